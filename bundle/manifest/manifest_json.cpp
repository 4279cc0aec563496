// SPDX-License-Identifier: Apache-2.0
// Reads and writes the manifest field by field; see manifest_json.hpp.
#include "sealift/bundle/manifest/manifest_json.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bundle/core/json.hpp"
#include "bundle/manifest/manifest_words.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/manifest_check.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"

namespace sealift::bundle {
namespace {

using namespace detail;  // its words and fields

CarriedRuntime parse_runtime(JsonObject object) {
  CarriedRuntime runtime{.glibc = glibc_version(object, "glibc"), .kernel = dotted_version(object, "kernel")};
  object.done();
  return runtime;
}

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
    refuse_json(where + ".absent", "true was expected, or no such key", entry.path.text());
  if (entry.absent) {
    entry.content = object.digest("content");
  } else {
    entry.encoding = enum_value(kEncodingNames, object.string("encoding", 20), where + ".encoding");
    if (entry.encoding == Encoding::Patch) entry.base = object.digest("base");
    entry.offset = object.integer("offset", payload.size);
    entry.stored_size = object.integer("stored_size", payload.size - entry.offset);
    entry.stored_sha256 = object.digest("stored_sha256");
  }
  entry.installed_size = object.integer("installed_size", kMaxPayloadSize);
  entry.installed_files = object.integer("installed_files", kMaxEntries);
  entry.executable = object.boolean("executable");
  object.done();
  return entry;
}

std::vector<Volume> parse_volumes(JsonObject& object, const std::string& key, std::uint64_t most) {
  std::vector<Volume> volumes;
  for (const Json& json : object.array(key, kMaxVolumes)) {
    JsonObject item(json, object.where() + "." + key);
    volumes.push_back({.name = item.string("name", 255), .size = item.integer("size", most)});
    item.done();
  }
  return volumes;
}

Recovery parse_recovery(JsonObject object) {
  Recovery recovery{.groups = object.integer("groups", kMaxChunks),
                    .parity = object.integer("parity", kMaxPieces),
                    .list_digest = object.digest("list_digest"),
                    .files = parse_volumes(object, "files", kMaxPayloadSize)};
  object.done();
  return recovery;
}

Payload parse_payload(JsonObject object) {
  Payload payload;
  payload.size = object.integer("size", kMaxPayloadSize);
  payload.chunk_size = object.integer("chunk_size", kMaxChunkSize);
  const std::string name = object.string("digest", 20);
  const std::optional<DigestAlgorithm> algorithm = digest_algorithm(name);
  if (!algorithm)
    throw Error(ErrorCode::CannotCheck,
                {.what = "the chunks are digested with an algorithm that this version does not know",
                 .where = object.where(),
                 .expected = "sha256 or sm3",
                 .got = SafePath::printable(name)});
  payload.digest = *algorithm;
  payload.chunk_list_digest = object.digest("chunk_list_digest");
  payload.volumes = parse_volumes(object, "volumes", payload.size);
  if (object.has("recovery")) payload.recovery = parse_recovery(object.object("recovery"));
  object.done();
  return payload;
}

std::vector<SafePath> parse_left_out(JsonObject& placement) {
  const std::string where = placement.where() + ".left_out";
  std::vector<SafePath> paths;
  for (const Json& json : placement.array("left_out", kMaxEntries)) {
    if (!json.is_string()) refuse_json(where, "a path was expected", json.type_name());
    paths.push_back(SafePath::parse(json.get<std::string>(), where));
    if (paths.size() > 1 && !(paths[paths.size() - 2] < paths.back()))
      refuse_json(where, "paths must be sorted and unique", paths.back().text());
  }
  if (paths.empty()) refuse_json(where, "a path was expected, or no such key");
  return paths;
}

std::vector<Digest> parse_startup_files(JsonObject& environment) {
  const std::string where = environment.where() + ".startup";
  std::vector<Digest> digests;
  for (const Json& json : environment.array("startup", 1000)) {
    const std::optional<Digest> digest =
        json.is_string() ? Digest::from_hex(json.get_ref<const std::string&>()) : std::nullopt;
    if (!digest) refuse_json(where, "a SHA-256 was expected", json.dump().substr(0, 80));
    if (!digests.empty() && !(digests.back() < *digest))
      refuse_json(where, "digests must be sorted and unique", digest->hex());
    digests.push_back(*digest);
  }
  if (digests.empty()) refuse_json(where, "a SHA-256 was expected, or no such key");
  return digests;
}

// Words of nvcc, which the reader of fat binaries writes; a word that is not known here is kept.
bool is_gpu_words(std::string_view text) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ' '; };
  return !text.empty() && text.size() <= 1000 && std::all_of(text.begin(), text.end(), fits);
}

std::map<std::string, std::string> parse_gpu_code(const Json& code, const std::string& where) {
  std::map<std::string, std::string> out;
  if (!code.is_object() || code.empty() || code.size() > kMaxEntries)
    refuse_json(where, "components and what their code is for were expected, or no such key");
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
  if (checks.empty()) refuse_json(where, "a check was expected, or no such key");
  return checks;
}

Environment parse_environment(JsonObject object) {
  Environment environment;
  environment.interpreter = SafePath::parse(object.string("interpreter"), object.where() + ".interpreter");
  environment.site_packages = SafePath::parse(object.string("site_packages"), object.where() + ".site_packages");
  for (const Json& json : object.array("placements", kMaxEntries)) {
    JsonObject item(json, object.where() + ".placements");
    Environment::Placement placement{.entry = SafePath::parse(item.string("entry"), item.where() + ".entry"),
                                     .into = item.string("into")};
    if (item.has("left_out")) placement.left_out = parse_left_out(item);
    item.done();
    if (!placement.into.empty()) SafePath::parse(placement.into, item.where() + ".into");
    environment.placements.push_back(std::move(placement));
  }
  for (const Json& json : object.array("imports", 1000)) {
    const bool plain = json.is_string() && is_plain_name(json.get_ref<const std::string&>());
    if (!plain) refuse_json(object.where() + ".imports", "a module name was expected", json.dump().substr(0, 80));
    environment.imports.push_back(json.get<std::string>());
  }
  if (object.has("runtime")) environment.runtime = parse_runtime(object.object("runtime"));
  if (object.has("startup")) environment.startup_files = parse_startup_files(object);
  object.done();
  return environment;
}

Json written(const std::vector<Volume>& volumes) {
  Json out = Json::array();
  for (const Volume& volume : volumes) out.push_back({{"name", volume.name}, {"size", volume.size}});
  return out;
}

Json written(const Recovery& recovery) {
  return {{"groups", recovery.groups},
          {"parity", recovery.parity},
          {"list_digest", recovery.list_digest.hex()},
          {"files", written(recovery.files)}};
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
  Json placements = Json::array();
  for (const Environment::Placement& placement : manifest.environment.placements) {
    placements.push_back({{"entry", placement.entry.text()}, {"into", placement.into}});
    for (const SafePath& path : placement.left_out) placements.back()["left_out"].push_back(path.text());
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
               {"payload",
                {{"size", manifest.payload.size},
                 {"chunk_size", manifest.payload.chunk_size},
                 {"digest", name_of(manifest.payload.digest)},
                 {"chunk_list_digest", manifest.payload.chunk_list_digest.hex()},
                 {"volumes", written(manifest.payload.volumes)}}},
               {"entries", std::move(entries)},
               {"environment",
                {{"interpreter", manifest.environment.interpreter.text()},
                 {"site_packages", manifest.environment.site_packages.text()},
                 {"placements", std::move(placements)},
                 {"imports", manifest.environment.imports}}},
               {"companions", std::move(companions)}};
  for (const Digest& file : manifest.environment.startup_files) json["environment"]["startup"].push_back(file.hex());
  if (manifest.payload.recovery) json["payload"]["recovery"] = written(*manifest.payload.recovery);
  if (manifest.base) json["base"] = manifest.base->hex();
  if (!manifest.driver_floor.empty()) json["target"]["driver_floor"] = manifest.driver_floor;
  if (!manifest.gpu_code.empty()) json["target"]["gpu_code"] = manifest.gpu_code;
  if (!manifest.overruled.empty()) json["target"]["overruled"] = manifest.overruled;
  if (const std::optional<CarriedRuntime>& runtime = manifest.environment.runtime)
    json["environment"]["runtime"] = {{"glibc", runtime->glibc.text()}, {"kernel", runtime->kernel}};
  return write_json(json);
}

}  // namespace sealift::bundle
