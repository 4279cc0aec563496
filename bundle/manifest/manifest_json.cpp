// SPDX-License-Identifier: Apache-2.0
// Reads and writes the manifest field by field; see manifest_json.hpp.
#include "sealift/bundle/manifest/manifest_json.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bundle/core/json.hpp"
#include "bundle/manifest/environment_json.hpp"
#include "bundle/manifest/manifest_words.hpp"
#include "bundle/manifest/payload_json.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest_check.hpp"

namespace sealift::bundle {
namespace {

using namespace detail;  // its words and fields

Entry parse_entry(const Json& json, const std::string& where, const Payload& payload) {
  JsonObject object(json, where);
  Entry entry;
  entry.path = SafePath::parse(object.string("path"), where + ".path");
  entry.kind = enum_value(kKindNames, object.string("kind", 20), where + ".kind");
  entry.size = object.integer("size", kMaxPayloadSize);
  entry.sha256 = object.digest("sha256");
  if (object.has("built")) entry.build = enum_value(kBuildNames, object.string("built", 20), where + ".built");
  entry.absent = object.has("absent");
  if (entry.absent && !object.boolean("absent"))
    refuse_json(where + ".absent", "true was expected; leave the key out otherwise", entry.path.text());
  if (entry.absent) {
    entry.content = object.digest("content");
  } else {
    entry.encoding = enum_value(kEncodingNames, object.string("encoding", 20), where + ".encoding");
    if (entry.encoding == Encoding::Patch) entry.base = object.digest("base");
    entry.offset = object.integer("offset", payload.size);
    entry.stored_size = object.integer("stored_size", payload.size - entry.offset);
    entry.stored_sha256 = object.digest("stored_sha256");
  }
  if (object.has("verity")) entry.verity = object.digest("verity");
  entry.installed_size = object.integer("installed_size", kMaxPayloadSize);
  entry.installed_files = object.integer("installed_files", kMaxEntries);
  entry.executable = object.boolean("executable");
  object.done();
  return entry;
}

// Words of nvcc, which the reader of fat binaries writes; a word that is not known here is kept.
bool is_gpu_words(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ' '; };
  return !text.empty() && text.size() <= 1000 && std::all_of(text.begin(), text.end(), fits);
}

std::map<std::string, std::string> parse_gpu_code(const Json& code, const std::string& where) {
  std::map<std::string, std::string> out;
  if (!code.is_object() || code.empty() || code.size() > kMaxEntries)
    refuse_json(where, "components and what their code is for were expected; leave the key out where there is none");
  for (const auto& [component, images] : code.items()) {
    if (!is_plain_name(component) || !images.is_string() || !is_gpu_words(images.get_ref<const std::string&>()))
      refuse_json(where, "a component and words such as sm_90 were expected", SafePath::printable(component));
    out[component] = images.get<std::string>();
  }
  return out;
}

std::vector<std::string> parse_overruled(JsonObject& target) {
  const std::string where = target.where() + ".overruled";
  std::vector<std::string> checks;
  for (const Json& json : target.array("overruled", 100)) {
    if (!json.is_string() || !is_plain_name(json.get_ref<const std::string&>()))
      refuse_json(where, "the name of a check was expected", json.dump().substr(0, 80));
    if (!checks.empty() && checks.back() >= json.get_ref<const std::string&>())
      refuse_json(where, "checks must be sorted and unique", checks.back());
    checks.push_back(json.get<std::string>());
  }
  if (checks.empty()) refuse_json(where, "a check was expected; leave the key out where there is none");
  return checks;
}

// What to do about a manifest of another format.
std::string next_step_for(std::uint64_t format) {
  return format < kFormatVersion ? "pack it again with this version's sealift-pack; this version does not read it"
                                 : "use the sealift-install that came with the bundle";
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json root = parse_json(text, where);
  JsonObject object(root, where);
  if (const std::uint64_t format = object.integer("format"); format != kFormatVersion)
    throw Error(ErrorCode::CannotCheck,
                {.what = "the bundle is of format " + std::to_string(format) + ", which this version does not read",
                 .where = where,
                 .expected = std::to_string(kFormatVersion),
                 .got = std::to_string(format),
                 .next = next_step_for(format)});
  Manifest manifest;
  manifest.installer_level = object.integer("installer_level");
  if (manifest.installer_level > kInstallerLevel)
    throw Error(ErrorCode::CannotCheck, {.what = "the bundle needs a newer installer",
                                         .where = where,
                                         .expected = "level " + std::to_string(manifest.installer_level),
                                         .got = "level " + std::to_string(kInstallerLevel),
                                         .next = "use the sealift-install that came with the bundle"});
  manifest.name = plain_name(object, "name");
  manifest.channel = plain_name(object, "channel");
  manifest.version = object.integer("version");
  manifest.created = object.string("created", 40);
  if (!parse_time(manifest.created))
    refuse_json(where + ".created", "a time such as 2026-01-31T12:00:00Z was expected",
                SafePath::printable(manifest.created));
  manifest.rollback_floor = object.integer("rollback_floor");
  JsonObject target = object.object("target");
  manifest.target.arch = plain_name(target, "arch");
  manifest.target.glibc = glibc_version(target, "glibc");
  manifest.glibc_floor = glibc_version(target, "glibc_floor");
  if (target.has("driver_floor")) manifest.driver_floor = dotted_version(target, "driver_floor");
  if (target.has("gpu_code")) manifest.gpu_code = parse_gpu_code(target.at("gpu_code"), where + ".target.gpu_code");
  if (target.has("overruled")) manifest.overruled = parse_overruled(target);
  target.done();
  manifest.payload = parse_payload(object.object("payload"));
  for (const Json& json : object.array("entries", kMaxEntries))
    manifest.entries.push_back(
        parse_entry(json, where + ".entries[" + std::to_string(manifest.entries.size()) + "]", manifest.payload));
  manifest.payload.cuts = cuts_of(manifest.entries, manifest.payload.size);
  manifest.environment = parse_environment(object.object("environment"));
  if (object.has("base")) manifest.base = object.digest("base");
  for (const Json& json : object.array("companions", 16)) {
    JsonObject item(json, where + ".companions");
    manifest.companions.push_back({.name = plain_name(item, "name"),
                                   .size = item.integer("size", std::uint64_t{1} << 32),
                                   .sha256 = item.digest("sha256")});
    item.done();
  }
  object.done();
  check_manifest(manifest, where);
  if (write_json(root) != text) refuse_json(where, "it is not spelled as it was written");
  return manifest;
}

std::string write_manifest(const Manifest& manifest) {
  Json entries = Json::array();
  for (const Entry& entry : manifest.entries) {
    Json item = {{"path", entry.path.text()},
                 {"kind", enum_name(kKindNames, entry.kind)},
                 {"size", entry.size},
                 {"sha256", entry.sha256.hex()},
                 {"installed_size", entry.installed_size},
                 {"installed_files", entry.installed_files},
                 {"executable", entry.executable}};
    if (entry.verity) item["verity"] = entry.verity->hex();
    if (entry.build != WheelBuild::None) item["built"] = enum_name(kBuildNames, entry.build);
    if (entry.absent) {
      item["absent"] = true;
      item["content"] = entry.content.hex();
    } else {
      item["encoding"] = enum_name(kEncodingNames, entry.encoding);
      if (entry.encoding == Encoding::Patch) item["base"] = entry.base.hex();
      item["offset"] = entry.offset;
      item["stored_size"] = entry.stored_size;
      item["stored_sha256"] = entry.stored_sha256.hex();
    }
    entries.push_back(std::move(item));
  }
  Json companions = Json::array();
  for (const Companion& companion : manifest.companions)
    companions.push_back({{"name", companion.name}, {"size", companion.size}, {"sha256", companion.sha256.hex()}});
  Json json = {{"format", kFormatVersion},
               {"installer_level", manifest.installer_level},
               {"name", manifest.name},
               {"channel", manifest.channel},
               {"version", manifest.version},
               {"created", manifest.created},
               {"rollback_floor", manifest.rollback_floor},
               {"target",
                {{"arch", manifest.target.arch},
                 {"glibc", manifest.target.glibc.text()},
                 {"glibc_floor", manifest.glibc_floor.text()}}},
               {"payload", payload_json(manifest.payload)},
               {"entries", std::move(entries)},
               {"environment", environment_json(manifest.environment)},
               {"companions", std::move(companions)}};
  if (manifest.base) json["base"] = manifest.base->hex();
  if (!manifest.driver_floor.empty()) json["target"]["driver_floor"] = manifest.driver_floor;
  if (!manifest.gpu_code.empty()) json["target"]["gpu_code"] = manifest.gpu_code;
  if (!manifest.overruled.empty()) json["target"]["overruled"] = manifest.overruled;
  return write_json(json);
}

}  // namespace sealift::bundle
