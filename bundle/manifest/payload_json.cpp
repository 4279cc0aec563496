// SPDX-License-Identifier: Apache-2.0
// Volumes and recovery files are spelled alike; see payload_json.hpp.
#include "bundle/manifest/payload_json.hpp"

#include <optional>
#include <string>
#include <vector>

#include "bundle/core/json.hpp"
#include "sealift/bundle/manifest/chunk_layout.hpp"
#include "sealift/bundle/manifest/recovery_layout.hpp"

namespace sealift::bundle::detail {

namespace {

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

Json files_json(const std::vector<Volume>& volumes) {
  Json out = Json::array();
  for (const Volume& volume : volumes) out.push_back({{"name", volume.name}, {"size", volume.size}});
  return out;
}

Json recovery_json(const Recovery& recovery) {
  return {{"groups", recovery.groups},
          {"parity", recovery.parity},
          {"list_digest", recovery.list_digest.hex()},
          {"files", files_json(recovery.files)}};
}

}  // namespace

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

Json payload_json(const Payload& payload) {
  Json json = {{"size", payload.size},
               {"chunk_size", payload.chunk_size},
               {"digest", name_of(payload.digest)},
               {"chunk_list_digest", payload.chunk_list_digest.hex()},
               {"volumes", files_json(payload.volumes)}};
  if (payload.recovery) json["recovery"] = recovery_json(*payload.recovery);
  return json;
}

}  // namespace sealift::bundle::detail
