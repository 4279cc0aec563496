// SPDX-License-Identifier: Apache-2.0
// Roots by themselves: what is written is read back, and everything that would make one unsafe is refused by name.
#include "sealift/bundle/trust/root.hpp"

#include <functional>

#include "bundle/core/json.hpp"
#include "bundle/core/openssl.hpp"
#include "bundle/trust/openssl_keys.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

struct Keys {
  PrivateKey a = PrivateKey::generate(), b = PrivateKey::generate(), p384 = PrivateKey::generate(Algorithm::EcdsaP384),
             sm2 = PrivateKey::generate(Algorithm::Sm2);
};

Root full_root(const Keys& keys) {
  Root root = make_root({&keys.a, &keys.b}, {&keys.a, &keys.sm2}, {&keys.p384});
  root.roles["root"].threshold = 2;
  root.roles["release"].threshold = 2;
  root.roles["release"].algorithms = {"ed25519", "sm2"};
  root.revoked_keys[sha256(as_bytes("k"))] = {.date = "2026-02-01T00:00:00Z", .reason = "lost"};
  root.revoked_bundles[sha256(as_bytes("b"))] = {.date = "2026-02-02T00:00:00Z", .reason = "bad \"torch\""};
  root.floors[{.channel = "prod", .name = "env"}] = 7;
  return root;
}

Root again(const Root& root) {
  return parse_root(write_root(root), "root.json");
}

// The root's JSON with one value changed.
Root changed(const Root& root, const std::function<void(Json&)>& change) {
  Json json = Json::parse(write_root(root));
  change(json);
  return parse_root(write_json(json), "root.json");
}

}  // namespace

TEST_CASE("a root is read back as it was written") {
  const Keys keys;
  Root root = full_root(keys);
  CHECK(again(root) == root);
  root.strict = root.reset = true;
  CHECK(again(root) == root);
  CHECK_REFUSED(parse_root(write_root(root) + " ", "root.json"), Format, "spelled");
}

TEST_CASE("a threshold is from 1 to the number of the role's keys") {
  const Keys keys;
  Root root = full_root(keys);
  for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{3}, kMaxJsonInteger}) {
    root.roles["root"].threshold = threshold;
    CHECK_REFUSED(again(root), Format, "threshold");
  }
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["roles"][1]["threshold"] = -1; }), Format, "threshold");
  root = full_root(keys);
  root.roles["site"].keys.clear();
  CHECK_REFUSED(again(root), Format, "role site");
}

TEST_CASE("a key counts once: twice in a role, twice among the keys, or under two ids is refused") {
  const Keys keys;
  Root root = full_root(keys);
  root.roles["root"].keys.push_back(root.roles["root"].keys.back());
  CHECK_REFUSED(again(root), Format, "none twice");
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["keys"].push_back(json["keys"][0]); }), Format, "twice");
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["keys"][0]["spki"] = json["keys"][1]["spki"]; }), Format,
                "not the SHA-256 of its key");
}

TEST_CASE("a role that names no key of the root, a revoked one, or is unknown is refused") {
  const Keys keys;
  Root root = full_root(keys);
  root.roles["site"].keys = {sha256(as_bytes("nobody"))};
  CHECK_REFUSED(again(root), Format, "does not have");
  root = full_root(keys);
  root.revoked_keys[keys.b.public_key().id()] = {.date = "2026-01-01T00:00:00Z", .reason = "stolen"};
  CHECK_REFUSED(again(root), Format, "revoked key");
  root = full_root(keys);
  root.roles.erase("release");
  CHECK_REFUSED(again(root), Format, "release is missing");
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["roles"][2]["role"] = "mirror"; }), CannotCheck,
                "mirror");
}

TEST_CASE("a key is of the kind that its label says") {
  const Keys keys;
  Root root = make_root({&keys.a}, {&keys.a});
  const PrivateKey p256 = PrivateKey::generate(Algorithm::EcdsaP256);
  add_key(root, "release", p256.public_key());
  root.keys[p256.public_key().id()].algorithm = "sm2";
  CHECK_REFUSED(again(root), Format, "another kind than its label");
  root.keys[p256.public_key().id()].algorithm = "ed25519";
  CHECK_REFUSED(again(root), Format, "ecdsa-p256");
  root.keys[p256.public_key().id()].algorithm = "ecdsa-p256";
  CHECK(again(root) == root);
}

TEST_CASE("weak keys do not get into a root under a known label; those of a later algorithm may stand there") {
  const Keys keys;
  const KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{1024}));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(rsa.get(), &der);
  const Bytes spki = detail::take_der(der, size);
  Root root = make_root({&keys.a}, {&keys.a});
  root.keys[sha256(spki)] = {.algorithm = "ed25519", .spki = spki};
  CHECK_REFUSED(again(root), CannotCheck, "rsaEncryption");
  root.keys[sha256(spki)] = {.algorithm = "ml-dsa-65", .spki = spki};
  CHECK(again(root) == root);
}

TEST_CASE("required kinds of signature must be possible") {
  const Keys keys;
  Root root = full_root(keys);
  root.roles["release"].algorithms = {"ecdsa-p384"};
  CHECK_REFUSED(again(root), Format, "none of its keys can make");
  root.roles["release"].algorithms = {"ed25519", "sm2"};
  root.roles["release"].threshold = 1;
  CHECK_REFUSED(again(root), Format, "more kinds of signature than");
}

TEST_CASE("a fips root takes ECDSA keys, a gm root asks for SM2, and no root can be both") {
  const Keys keys;
  Root fips = make_root({&keys.p384}, {&keys.p384});
  fips.profile = Profile::Fips;
  CHECK(again(fips) == fips);
  add_key(fips, "release", keys.a.public_key());
  CHECK_REFUSED(again(fips), Format, "ECDSA keys only");
  fips = make_root({&keys.p384}, {&keys.p384, &keys.sm2});
  fips.profile = Profile::Fips;
  CHECK_REFUSED(again(fips), Format, "cannot meet FIPS and GM both");
  Root gm = make_root({&keys.sm2}, {&keys.sm2, &keys.a});
  gm.profile = Profile::Gm;
  CHECK_REFUSED(again(gm), Format, "\"sm2\" must be among");
  gm.roles["root"].algorithms = gm.roles["release"].algorithms = {"sm2"};
  CHECK(again(gm) == gm);
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["profile"] = "gm+fips"; }), CannotCheck, "gm+fips");
}

TEST_CASE("versions, times and sizes are bounded") {
  const Keys keys;
  for (const char* text : {"0", "1000001", "9007199254740991", "18446744073709551615", "-1"}) {
    std::string json = write_root(full_root(keys));
    json.replace(json.rfind("\"version\":1"), 11, std::string("\"version\":") + text);
    CHECK_REFUSED(parse_root(json, "root.json"), Format, "");
  }
  Root root = full_root(keys);
  root.expires = "tomorrow";
  CHECK_REFUSED(again(root), Format, "expires");
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["format"] = 2; }), CannotCheck, "format");
  CHECK_REFUSED(changed(full_root(keys), [](Json& json) { json["extra"] = 1; }), Format, "extra");
}

TEST_CASE("times have one spelling") {
  CHECK(write_time(*parse_time("2026-02-28T23:59:59Z")) == "2026-02-28T23:59:59Z");
  CHECK(write_time(Time{}) == "1970-01-01T00:00:00Z");
  CHECK(write_time(Time(std::chrono::seconds(-5))) == "1970-01-01T00:00:00Z");
  CHECK(write_time(Time(std::chrono::years(20000))) == "9999-12-31T23:59:59Z");
  CHECK(parse_time("2038-01-19T03:14:08Z")->time_since_epoch().count() == (std::int64_t{1} << 31));
  for (const char* bad :
       {"", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00z", "2026-1-01T00:00:000Z", "1969-12-31T23:59:59Z", "2026-00-01T00:00:00Z"})
    CHECK_FALSE(parse_time(bad));
}
