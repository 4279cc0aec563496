// SPDX-License-Identifier: Apache-2.0
// Reads and writes a root, and holds each role to its rules; see root.hpp.
#include "sealift/bundle/trust/root.hpp"

#include <algorithm>
#include <utility>

#include "bundle/core/fields_json.hpp"
#include "bundle/core/json.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {

namespace {

constexpr std::pair<Profile, std::string_view> kProfileNames[] = {
    {Profile::Standard, "standard"}, {Profile::Fips, "fips"}, {Profile::Gm, "gm"}};

std::pair<Digest, RootKey> parse_root_key(const Json& json, const std::string& where) {
  JsonObject object(json, where);
  const Digest id = object.digest("keyid");
  RootKey key{.algorithm = object.string("algorithm", 40), .spki = {}};
  const std::optional<Bytes> spki = from_base64(object.string("spki", 2 * kMaxSpki));
  object.done();
  if (!spki || sha256(*spki) != id) refuse_json(where, "a keyid is not the SHA-256 of its key", fingerprint_text(id));
  key.spki = *spki;
  if (!is_plain_name(key.algorithm)) refuse_json(where, "an algorithm's name is not plain");
  if (find_algorithm(key.algorithm) == nullptr) return {id, std::move(key)};  // one of a later version
  if (const PublicKey known = PublicKey::from_spki(key.spki, where); name_of(known.algorithm()) != key.algorithm)
    refuse_json(where, "a key is of another kind than its label says: " + key.algorithm, name_of(known.algorithm()));
  return {id, std::move(key)};
}

std::pair<std::string, Role> parse_role(const Json& json, const std::string& where, const Root& root) {
  JsonObject object(json, where);
  const std::string name = object.string("role", 40);
  if (name != kRootRole && name != kReleaseRole && name != kSiteRole)
    throw Error(ErrorCode::CannotCheck, {.what = "the root names a role that this version does not know",
                                         .where = where,
                                         .expected = "root, release, site",
                                         .got = SafePath::printable(name),
                                         .next = "use a newer sealift-install"});
  Role role{.keys = {}, .threshold = object.integer("threshold"), .algorithms = {}};
  for (const Json& item : object.array("keys", kMaxRootKeys)) {
    const std::optional<Digest> id = item.is_string() ? Digest::from_hex(item.get<std::string>()) : std::nullopt;
    if (!id || !root.keys.contains(*id))
      refuse_json(where, "role " + name + " names a key that the root does not have");
    if (root.revoked_keys.contains(*id))
      refuse_json(where, "role " + name + " names a revoked key", fingerprint_text(*id));
    role.keys.push_back(*id);
  }
  for (const Json& item : object.array("algorithms", 16)) {
    if (!item.is_string() || !is_plain_name(item.get<std::string>()))
      refuse_json(where, "an algorithm's name is not plain");
    role.algorithms.push_back(item.get<std::string>());
  }
  object.done();
  return {name, std::move(role)};
}

bool has_key_of(const Root& root, const Role& role, const std::string& algorithm) {
  return std::any_of(role.keys.begin(), role.keys.end(),
                     [&](const Digest& id) { return root.keys.at(id).algorithm == algorithm; });
}

void check_role(const Root& root, const std::string& name, const Role& role, const std::string& where) {
  const auto in_order = [](const auto& list) {
    return std::adjacent_find(list.begin(), list.end(), [](const auto& a, const auto& b) { return !(a < b); }) ==
           list.end();
  };
  const auto refuse = [&](const std::string& why, const std::string& got = {}) {
    refuse_json(where, "role " + name + ": " + why, got);
  };
  if (!in_order(role.keys) || !in_order(role.algorithms)) refuse("its keys and algorithms must be sorted, none twice");
  if (role.threshold < 1 || role.threshold > role.keys.size())
    refuse("the threshold must be from 1 to the number of its keys, " + std::to_string(role.keys.size()),
           std::to_string(role.threshold));
  if (role.algorithms.size() > role.threshold)
    refuse("it asks for more kinds of signature than for signatures", std::to_string(role.algorithms.size()));
  for (const std::string& algorithm : role.algorithms)
    if (!has_key_of(root, role, algorithm))
      refuse("it asks for a kind of signature that none of its keys can make", algorithm);
  for (const Digest& id : role.keys) {
    const std::string& algorithm = root.keys.at(id).algorithm;
    if (root.profile != Profile::Fips || algorithm.starts_with("ecdsa-")) continue;
    refuse(algorithm == "sm2" ? "the profile is fips and a key is SM2: one root cannot meet FIPS and GM both; make two"
                              : "the profile is fips and takes ECDSA keys only",
           algorithm);
  }
  if (root.profile == Profile::Gm &&
      std::find(role.algorithms.begin(), role.algorithms.end(), "sm2") == role.algorithms.end())
    refuse("the profile is gm, so \"sm2\" must be among its algorithms");
}

Revocations parse_revocations(const Json& list, const std::string& key, const std::string& where) {
  Revocations revocations;
  for (const Json& json : list) {
    JsonObject object(json, where);
    const Digest digest = object.digest(key);
    Revocation revocation{.date = time_text(object, "date"), .reason = object.string("reason", 400)};
    object.done();
    if (!revocations.emplace(digest, std::move(revocation)).second)
      refuse_json(where, "it is revoked twice", digest.hex());
  }
  return revocations;
}

Json json_of(const Revocations& revocations, const char* key) {
  Json list = Json::array();
  for (const auto& [digest, revocation] : revocations)
    list.push_back({{key, digest.hex()}, {"date", revocation.date}, {"reason", revocation.reason}});
  return list;
}

}  // namespace

std::string name_of(Profile profile) {
  return enum_name(kProfileNames, profile);
}

std::optional<Profile> find_profile(std::string_view name) {
  for (const auto& [profile, known] : kProfileNames)
    if (known == name) return profile;
  return std::nullopt;
}

std::string write_root(const Root& root) {
  Json keys = Json::array(), roles = Json::array(), floors = Json::array();
  for (const auto& [id, key] : root.keys)
    keys.push_back({{"keyid", id.hex()}, {"algorithm", key.algorithm}, {"spki", to_base64(key.spki)}});
  for (const auto& [name, role] : root.roles) {
    Json ids = Json::array();
    for (const Digest& id : role.keys) ids.push_back(id.hex());
    roles.push_back(
        {{"role", name}, {"threshold", role.threshold}, {"algorithms", role.algorithms}, {"keys", std::move(ids)}});
  }
  for (const auto& [stream, version] : root.floors)
    floors.push_back({{"channel", stream.channel}, {"name", stream.name}, {"version", version}});
  return write_json({{"format", kRootFormat},
                     {"name", root.name},
                     {"version", root.version},
                     {"created", root.created},
                     {"expires", root.expires},
                     {"strict", root.strict},
                     {"reset", root.reset},
                     {"profile", name_of(root.profile)},
                     {"keys", std::move(keys)},
                     {"roles", std::move(roles)},
                     {"revoked_keys", json_of(root.revoked_keys, "keyid")},
                     {"revoked_bundles", json_of(root.revoked_bundles, "manifest_sha256")},
                     {"floors", std::move(floors)}});
}

Root parse_root(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  JsonObject object(json, where);
  if (const std::uint64_t format = object.integer("format"); format != kRootFormat)
    throw Error(ErrorCode::CannotCheck, {.what = "the root is of a format that this version does not know",
                                         .where = where,
                                         .expected = std::to_string(kRootFormat),
                                         .got = std::to_string(format),
                                         .next = "use a newer sealift-install"});
  Root root;
  root.name = plain_name(object, "name");
  root.version = object.integer("version", kMaxRootVersion);
  if (root.version == 0) refuse_json(where, "root versions start at 1", "0");
  root.created = time_text(object, "created");
  root.expires = time_text(object, "expires");
  root.strict = object.boolean("strict");
  root.reset = object.boolean("reset");
  root.profile = enum_value(kProfileNames, object.string("profile", 20), where + ".profile");
  root.revoked_keys = parse_revocations(object.array("revoked_keys", kMaxRevoked), "keyid", where);
  root.revoked_bundles = parse_revocations(object.array("revoked_bundles", kMaxRevoked), "manifest_sha256", where);
  for (const Json& item : object.array("keys", kMaxRootKeys))
    if (!root.keys.insert(parse_root_key(item, where + ".keys")).second)
      refuse_json(where + ".keys", "a key stands twice");
  for (const Json& item : object.array("roles", 3))
    if (!root.roles.insert(parse_role(item, where + ".roles", root)).second)
      refuse_json(where + ".roles", "a role stands twice");
  for (const Json& item : object.array("floors", kMaxRevoked)) {
    JsonObject floor(item, where + ".floors");
    const Stream stream{.channel = plain_name(floor, "channel"), .name = plain_name(floor, "name")};
    root.floors[stream] = floor.integer("version");
    floor.done();
  }
  object.done();
  for (const std::string_view needed : {kRootRole, kReleaseRole})
    if (!root.roles.contains(std::string(needed)))
      refuse_json(where, "the role " + std::string(needed) + " is missing");
  for (const auto& [name, role] : root.roles) check_role(root, name, role, where + ".roles");
  if (write_root(root) != text) refuse_json(where, "it is not spelled as it was written");
  return root;
}

}  // namespace sealift::bundle
