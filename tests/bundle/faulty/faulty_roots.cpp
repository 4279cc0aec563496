// SPDX-License-Identifier: Apache-2.0
// Who signed: chains of roots, thresholds and revocations, each good and with one fault; then roots by their fields.
#include "tests/bundle/faulty/faulty_bundles.hpp"

#include <algorithm>
#include <tuple>

namespace sealift::test {

namespace {

void root_field(const std::string& name, const std::string& where, const Json& value) {
  root(name, [&](Json& json) { json[Json::json_pointer(where)] = value; });
}
// A good root with something of its own.
Envelope root_with(const std::function<void(Root&)>& change, Root base, const Keys& signers) {
  change(base);
  return signed_root(base, signers);
}

}  // namespace

void signers_and_roots() {
  fresh("good");
  fresh("good-sm3", tiny(DigestAlgorithm::Sm3));
  const Root plain = make_root({&key}, {&key});
  for (const PrivateKey* signer : {&other, &third, &chinese})
    under("good-" + name_of(signer->public_key().algorithm()), {one_key_root(*signer)}, {signer});
  const Envelope both = root_with(
      [](Root& root) {
        root.profile = Profile::Gm;
        for (auto& [name, role] : root.roles) role.threshold = 2, role.algorithms = {"ed25519", "sm2"};
        root.revoked_keys[third.public_key().id()] = {.date = "2026-01-01T00:00:00Z",
                                                      .reason = "旧钥匙 \"lost\" \\ \n\x01\x7f"};
      },
      make_root({&other, &chinese}, {&other, &chinese}), {&other, &chinese});
  under("good-gm", {both}, {&other, &chinese});
  under("gm-stripped", {both}, {&other});
  under("gm-stripped-in-root", {signed_root(parse_root(both.payload, ""), {&chinese})}, {&other, &chinese});
  under("good-unneeded-stranger", {one_key_root(key)}, {&key, &chinese});
  const Envelope one = one_key_root(key);
  const Root second = next_root(plain, [](Root& root) {
    root.roles.clear(), root.keys.clear();
    add_key(root, "root", other.public_key()), add_key(root, "release", other.public_key());
  });
  const Envelope two = signed_root(second, {&key, &other}), three = signed_root(next_root(second), {&other});
  under("good-rotated", {one, two, three}, {&other});
  under("good-rotated-pinned-later", {one, two, three}, {&other}, 1);
  under("rotated-old-signer", {one, two, three}, {&key});
  under("rotated-gap", {one, three}, {&other});
  under("rotated-wrong-order", {two, one}, {&key});
  under("rotated-new-keys-only", {one, signed_root(second, {&other})}, {&other});
  under("rotated-old-keys-only", {one, signed_root(second, {&key})}, {&other});
  const Envelope revoking =
      root_with([](Root& root) { root.revoked_keys[third.public_key().id()] = {.date = root.created, .reason = "x"}; },
                plain, {&key});
  under("revocation-taken-back", {revoking, signed_root(next_root(plain), {&key})}, {&key});
  under("revoked-key", {revoking}, {&third});
  under("good-beside-revoked-key", {revoking}, {&key, &third});
  const Envelope site = signed_root(make_root({&key}, {&key}, {&other}), {&key});
  under("good-site", {site}, {&key, &other});
  under("site-missing", {site}, {&key});
  const Envelope two_of_two =
      root_with([](Root& root) { root.roles["release"].threshold = 2; }, make_root({&key}, {&key, &other}), {&key});
  under("good-threshold", {two_of_two}, {&key, &other});
  under("below-threshold", {two_of_two}, {&other});
  under("no-signature", {one}, {});
  under("stranger-only", {one}, {&other});
  const auto accepts = [&](const std::string& name, const std::function<void(Root&)>& change) {
    under(name, {root_with(change, plain, {&key})}, {&key});
  };
  accepts("floor", [](Root& root) { root.floors[{"test", "tiny"}] = 8; });
  accepts("good-floor", [](Root& root) {
    root.floors[{"test", "tiny"}] = 7;
    root.floors[{"test", "tinz"}] = 9;
    root.floors[{"tes", "tiny"}] = 9;
  });
  accepts("good-expired", [](Root& root) { root.expires = "2001-01-01T00:00:00Z"; });
  accepts("expired-strict", [](Root& root) {
    root.expires = "2001-01-01T00:00:00Z";
    root.strict = true;
  });
  accepts("expired-strict-by-bundle", [](Root& root) {
    root.created = "2000-01-01T00:00:00Z";
    root.expires = "2025-12-31T23:59:59Z";
    root.strict = true;
  });
  accepts("good-unknown-key", [](Root& root) {
    const Bytes spki(40, std::byte{1});
    root.keys[sha256(spki)] = {.algorithm = "ml-dsa-65", .spki = spki};
    root.roles["release"].keys.push_back(sha256(spki));
    std::sort(root.roles["release"].keys.begin(), root.roles["release"].keys.end());
  });
  const MadeBundle scratch = make_bundle(faulty_folder / "scratch", tiny(), key);
  const Digest identity = sha256(as_bytes(write_manifest(scratch.manifest)));
  accepts("revoked-bundle",
          [&](Root& root) { root.revoked_bundles[identity] = {.date = root.created, .reason = "bad wheel"}; });
  fs::remove_all(faulty_folder / "scratch");
  const MadeBundle fips = make_bundle(faulty_folder / "good-fips", tiny(), third);
  reseal(fips, {root_with([](Root& root) { root.profile = Profile::Fips; }, make_root({&third}, {&third}), {&third})},
         {&third});
  report("good-fips", parse_seal(read_file(fips.seal()), "").roots[0].digest());
}

void bad_roots() {
  for (const auto& [name, where, value] : std::initializer_list<std::tuple<const char*, const char*, Json>>{
           {"format-2", "/format", 2},
           {"version-0", "/version", 0},
           {"version-large", "/version", 1'000'001},
           {"no-such-day", "/expires", "2026-02-30T00:00:00Z"},
           {"created-1969", "/created", "1969-01-01T00:00:00Z"},
           {"good-leap-day", "/created", "2024-02-29T23:59:59Z"},
           {"no-leap-day", "/created", "2100-02-29T00:00:00Z"},
           {"hour-24", "/created", "2024-02-28T24:00:00Z"},
           {"strict-text", "/strict", "yes"},
           {"profile-unknown", "/profile", "quantum"},
           {"gm-without-sm2", "/profile", "gm"},
           {"fips-with-ed25519", "/profile", "fips"},
           {"threshold-0", "/roles/0/threshold", 0},
           {"threshold-high", "/roles/0/threshold", 2},
           {"threshold-negative", "/roles/0/threshold", -1},
           {"threshold-float", "/roles/0/threshold", 1.5},
           {"role-unknown", "/roles/0/role", "admin"},
           {"roles-unsorted", "/roles/0/role", "site"},
           {"role-twice", "/roles/0/role", "root"},
           {"kind-unmakeable", "/roles/0/algorithms", Json::array({"sm2"})},
           {"keyid-changed", "/keys/0/keyid", std::string(64, '0')},
           {"label-changed", "/keys/0/algorithm", "ecdsa-p384"},
           {"name-bad", "/name", "../x"},
           {"unknown-key", "/extra", 1},
           {"no-keys", "/keys", Json::array()}})
    root_field(name, where, value);
  root("key-twice", [](Json& j) { j["keys"].push_back(j["keys"][1]); });
  root("keys-unsorted", [](Json& j) { std::swap(j["keys"][0], j["keys"][1]); });
  root("role-key-twice", [](Json& j) {
    j["roles"][0]["keys"].push_back(j["roles"][0]["keys"][0]);
    j["roles"][0]["threshold"] = 2;
  });
  root("too-many-kinds", [](Json& j) { j["roles"][1]["algorithms"] = {"ecdsa-p256", "ed25519"}; });
  root("role-of-revoked", [](Json& j) {
    j["revoked_keys"] =
        Json::array({{{"date", "2026-01-01T00:00:00Z"}, {"keyid", key.public_key().id().hex()}, {"reason", ""}}});
  });
  root("reason-long", [](Json& j) {
    j["revoked_keys"] = Json::array({{{"date", "2026-01-01T00:00:00Z"},
                                      {"keyid", third.public_key().id().hex()},
                                      {"reason", std::string(401, 'x')}}});
  });
  root("floor-twice", [](Json& j) {
    j["floors"] = Json::array(
        {{{"channel", "a"}, {"name", "b"}, {"version", 1}}, {{"channel", "a"}, {"name", "b"}, {"version", 2}}});
  });
  root("missing-key", [](Json& j) { j.erase("reset"); });
  root("not-self-signed", [](Json&) {}, {&third});
  root("good-two-roles", [](Json&) {}, {&other});
}

}  // namespace sealift::test
