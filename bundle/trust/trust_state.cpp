// SPDX-License-Identifier: Apache-2.0
// Reads and writes what a site remembers; see trust_state.hpp.
#include "sealift/bundle/trust/trust_state.hpp"

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"

namespace sealift::bundle {

Digest parse_fingerprint(std::string_view text) {
  std::string digits;
  std::string_view body = text.starts_with("sha256:") ? text.substr(7) : text;
  for (const char c : body)
    if (c != ':' && c != ' ' && c != '\n')
      digits.push_back(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  const std::optional<Digest> digest = Digest::from_hex(digits);
  if (!digest)
    throw Error(ErrorCode::Usage, {.what = "this is not a root's fingerprint",
                                   .expected = "sha256: and 64 hexadecimal digits, as `sealift-pack keygen` or `root "
                                               "create` printed them",
                                   .got = std::string(text.substr(0, 100))});
  return *digest;
}

std::string write_trust_state(const TrustState& state) {
  Json seen = Json::array();
  for (const auto& [stream, version] : state.seen) {
    Json older = Json::array();
    for (const auto& [number, manifest] : version.older)
      older.push_back({{"version", number}, {"manifest_sha256", manifest.hex()}});
    seen.push_back({{"channel", stream.channel},
                    {"name", stream.name},
                    {"version", version.version},
                    {"manifest_sha256", version.manifest.hex()},
                    {"floor", version.floor},
                    {"older", std::move(older)}});
  }
  return write_json({{"format", kTrustFormat},
                     {"pinned", state.pinned ? state.pinned->hex() : ""},
                     {"root", to_base64(as_bytes(state.root))},
                     {"seen", std::move(seen)},
                     {"time_floor", write_time(state.time_floor)}});
}

namespace {

SeenVersion parse_seen(JsonObject& entry, bool has_older) {
  SeenVersion seen{.version = entry.integer("version"),
                   .manifest = entry.digest("manifest_sha256"),
                   .floor = entry.integer("floor")};
  if (!has_older) return seen;
  for (const Json& item : entry.array("older", kMaxRemembered)) {
    JsonObject older(item, entry.where() + ".older");
    const std::uint64_t version = older.integer("version");
    seen.older[version] = older.digest("manifest_sha256");
    older.done();
  }
  return seen;
}

}  // namespace

TrustState parse_trust_state(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  JsonObject object(json, where);
  const std::uint64_t format = object.integer("format");
  if (format != kTrustFormat && format != 1)
    throw Error(ErrorCode::CannotCheck, {.what = "the trust state is of a format that this version does not know",
                                         .where = where,
                                         .expected = std::to_string(kTrustFormat),
                                         .got = std::to_string(format),
                                         .next = "use the newest sealift-install that this site has used"});
  TrustState state;
  state.pinned = object.digest("pinned");
  const std::optional<Bytes> root = from_base64(object.string("root", 2 * kMaxRootSize));
  if (!root) refuse_json(where, "the root is not canonical base64");
  state.root = as_text(*root);
  for (const Json& item : object.array("seen", 100'000)) {
    JsonObject entry(item, where + ".seen");
    const Stream stream{.channel = plain_name(entry, "channel"), .name = plain_name(entry, "name")};
    state.seen[stream] = parse_seen(entry, format != 1);
    entry.done();
  }
  state.time_floor = *parse_time(time_text(object, "time_floor"));
  object.done();
  return state;
}

}  // namespace sealift::bundle
