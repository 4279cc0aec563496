// SPDX-License-Identifier: Apache-2.0
// Writes and reads generation.json; see generation_record.hpp. A prefix outlives programs, so records of older ones are
// read too.
#include "installer/generations/generation_record.hpp"

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;
using bundle::Json;
using bundle::JsonObject;

namespace {
constexpr std::uint64_t kMaxGenerationRecord = std::uint64_t{1} << 30;

std::vector<bundle::SafePath> paths_of(JsonObject& part, const char* key) {
  std::vector<bundle::SafePath> paths;
  if (part.has(key))
    for (const Json& path : part.array(key, bundle::kMaxEntries))
      paths.push_back(bundle::SafePath::parse_published(path.is_string() ? path.get<std::string>() : "", part.where()));
  return paths;
}

std::vector<bundle::Digest> signers_of(JsonObject& object) {
  std::vector<bundle::Digest> signers;
  for (const Json& json : object.array("signers", bundle::kMaxSignatures)) {
    const std::optional<bundle::Digest> signer =
        json.is_string() ? bundle::Digest::from_hex(json.get<std::string>()) : std::nullopt;
    if (!signer) bundle::refuse_json(object.where() + ".signers", "a SHA-256 was expected");
    signers.push_back(*signer);
  }
  return signers;
}

bundle::RootName root_of(JsonObject& object) {
  JsonObject signing_root = object.object("root");
  bundle::RootName root;
  root.version = signing_root.integer("version");
  root.fingerprint = signing_root.digest("sha256");
  signing_root.done();
  return root;
}

Json hex_of(const std::vector<bundle::Digest>& digests) {
  Json json = Json::array();
  for (const bundle::Digest& digest : digests) json.push_back(digest.hex());
  return json;
}

constexpr std::size_t kMaxAdded = 1000;

std::vector<GenerationRecord::Bundle> added_from(JsonObject& object) {
  std::vector<GenerationRecord::Bundle> added;
  for (const Json& json : object.array("added", kMaxAdded)) {
    JsonObject one(json, object.where() + ".added");
    GenerationRecord::Bundle bundle;
    bundle.name = one.string("name");
    bundle.version = one.integer("version");
    bundle.channel = one.string("channel");
    bundle.created = one.string("created");
    bundle.identity = one.digest("identity");
    bundle.signers = signers_of(one);
    bundle.root = root_of(one);
    one.done();
    added.push_back(std::move(bundle));
  }
  return added;
}

}  // namespace

std::vector<GenerationRecord::Bundle> bundles_of(const GenerationRecord& record) {
  std::vector<GenerationRecord::Bundle> bundles = {{.name = record.name,
                                                    .version = record.version,
                                                    .channel = record.channel,
                                                    .created = record.created,
                                                    .identity = record.identity,
                                                    .signers = record.signers,
                                                    .root = record.root}};
  bundles.insert(bundles.end(), record.added.begin(), record.added.end());
  return bundles;
}

std::string stream_of(const GenerationRecord::Bundle& bundle) {
  return bundle::Stream{.channel = bundle.channel, .name = bundle.name}.text();
}

std::string words_for(const GenerationRecord::Bundle& bundle) {
  return bundle.name + " version " + std::to_string(bundle.version);
}

Json to_json(const std::vector<GenerationRecord::Bundle>& added) {
  Json json = Json::array();
  for (const GenerationRecord::Bundle& one : added)
    json.push_back({{"name", one.name},
                    {"version", one.version},
                    {"channel", one.channel},
                    {"created", one.created},
                    {"identity", one.identity.hex()},
                    {"signers", hex_of(one.signers)},
                    {"root", {{"version", one.root.version}, {"sha256", one.root.fingerprint.hex()}}}});
  return json;
}

Json to_json(const std::vector<bundle::MendedVolume>& mended) {
  Json json = Json::array();
  for (const bundle::MendedVolume& volume : mended)
    json.push_back({{"name", volume.name}, {"chunks", volume.chunks}, {"bytes", volume.bytes}});
  return json;
}

std::string write_generation_record(const GenerationRecord& record) {
  Json entries = Json::array();
  for (const GenerationRecord::Part& part : record.entries) {
    Json entry = {{"path", part.path}, {"item", part.item}, {"into", part.into}};
    for (const bundle::SafePath& path : part.left_out) entry["left_out"].push_back(path.text());
    for (const bundle::SafePath& path : part.shared) entry["shared"].push_back(path.text());
    if (!part.added.empty()) entry["added"] = part.added;
    entries.push_back(std::move(entry));
  }
  Json json = {{"format", kRecordFormat},
               {"generation", record.number},
               {"name", record.name},
               {"version", record.version},
               {"channel", record.channel},
               {"created", record.created},
               {"identity", record.identity.hex()},
               {"signers", hex_of(record.signers)},
               {"root", {{"version", record.root.version}, {"sha256", record.root.fingerprint.hex()}}},
               {"installed", record.installed},
               {"host", record.host},
               {"preflight", record.preflight},
               {"interpreter", record.interpreter},
               {"site_packages", record.site_packages},
               {"bytecode", record.bytecode},
               {"entries", std::move(entries)},
               {"audit", to_json(record.audit)},
               {"self_test", to_json(record.self_check)}};
  if (!record.mended.empty()) json["mended"] = to_json(record.mended);
  if (!record.added.empty()) json["added"] = to_json(record.added);
  return bundle::write_json(json) + "\n";
}

GenerationRecord read_generation_record(const fs::path& generation, unsigned number) {
  const fs::path path = generation / bundle::kGenerationRecord;
  const Json root = bundle::parse_json(bundle::read_text(path, kMaxGenerationRecord), path.string());
  JsonObject object(root, path.string());
  check_record_format(object);
  GenerationRecord record;
  record.number = static_cast<unsigned>(object.integer("generation", kMaxNumber));
  if (record.number != number)
    bundle::refuse_json(path.string(), "it is the record of another generation", std::to_string(record.number));
  record.name = object.string("name");
  record.version = object.integer("version");
  record.channel = object.string("channel");
  record.created = object.string("created");
  record.identity = object.digest("identity");
  record.signers = signers_of(object);
  record.root = root_of(object);
  record.installed = object.string("installed");
  if (object.has("host")) {  // older records have neither
    record.host = object.string("host");
    for (const Json& json : object.array("preflight", 1000))
      record.preflight.push_back(json.is_string() ? json.get<std::string>() : "");
  }
  if (object.has("mended"))
    for (const Json& json : object.array("mended", bundle::kMaxChunks)) {
      JsonObject volume(json, object.where() + ".mended");
      record.mended.push_back(
          {.name = volume.string("name"), .chunks = volume.integer("chunks"), .bytes = volume.integer("bytes")});
      volume.done();
    }
  if (object.has("bytecode")) record.bytecode = object.boolean("bytecode");
  const bool complete = object.has("site_packages");  // says how its entries were placed
  if (complete) {
    record.interpreter = bundle::SafePath::parse(object.string("interpreter"), object.where()).text();
    record.site_packages = bundle::SafePath::parse(object.string("site_packages"), object.where()).text();
  }
  for (const Json& json : object.array("entries", bundle::kMaxEntries)) {
    JsonObject part(json, object.where() + ".entries");
    record.entries.push_back(
        {.path = part.string("path"), .item = part.string("item"), .into = complete ? part.string("into") : ""});
    record.entries.back().left_out = paths_of(part, "left_out");
    record.entries.back().shared = paths_of(part, "shared");
    if (part.has("added")) record.entries.back().added = part.string("added");
    part.done();
  }
  if (object.has("added")) record.added = added_from(object);
  record.audit = audit_from(object.object("audit"));
  record.self_check = self_check_from(object.object("self_test"));
  object.done();
  return record;
}

}  // namespace sealift::installer
