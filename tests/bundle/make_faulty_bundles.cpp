// SPDX-License-Identifier: Apache-2.0
// Writes small bundles, good ones and one for each fault that verification knows, each into a folder of its own, and
// prints "NAME FINGERPRINT" a line: so that two verifiers can be held to the same verdict on all of them.
// Longer than a source should be, since it is a list: one short entry a fault, in the order of verification.
//   make_faulty_bundles FOLDER
#include <sys/stat.h>

#include <fstream>
#include <iostream>

#include "bundle/core/json.hpp"
#include "bundle/trust/openssl_keys.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift;
using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

fs::path out;
const PrivateKey key = PrivateKey::generate(Algorithm::EcdsaP256), other = PrivateKey::generate(Algorithm::Ed25519),
                 third = PrivateKey::generate(Algorithm::EcdsaP384), chinese = PrivateKey::generate(Algorithm::Sm2);
using Keys = std::vector<const PrivateKey*>;

TinyBundle tiny(DigestAlgorithm digest = DigestAlgorithm::Sha256) {
  TinyBundle tiny{.version = 7, .volume_size = 8192, .digest = digest};
  tiny.items = {wheel_item({}),
                {.path = "files/\"a\"", .bytes = std::string(5000, 'a'), .into = "share/a"},
                {.path = "files/b", .bytes = std::string(4000, 'b'), .into = "share/b", .encoding = Encoding::Zstd}};
  return tiny;
}

void report(const std::string& name, const Digest& pinned) {
  std::cout << name << ' ' << pinned.hex() << '\n';
}

MadeBundle fresh(const std::string& name, const TinyBundle& made = tiny()) {
  const MadeBundle bundle = make_bundle(out / name, made, key);
  report(name, *bundle.trusted.state.pinned);
  return bundle;
}

// A bundle under these roots; the last argument signs it.
using Chain = std::vector<Envelope>;
MadeBundle under(const std::string& name, const Chain& roots, const Keys& signers, std::size_t pinned = 0) {
  const MadeBundle made = make_bundle(out / name, tiny(), key);
  reseal(made, roots, signers);
  report(name, roots.at(pinned).digest());
  return made;
}

void seal_bytes(const MadeBundle& made, const std::string& manifest, std::string_view type = kBundlePayloadType) {
  const Seal seal{.roots = {one_key_root(key)}, .manifest = signed_document(manifest, {&key}, type)};
  write_file(made.seal(), write_seal(seal));
}

// A rightly signed manifest that `change` made wrong.
void manifest(const std::string& name, const std::function<void(Json&)>& change) {
  const MadeBundle made = fresh("manifest-" + name);
  Json json = parse_json(write_manifest(made.manifest), "");
  change(json);
  seal_bytes(made, json.dump());
}
void manifest_text(const std::string& name, const std::string& from, const std::string& to) {
  const MadeBundle made = fresh("manifest-" + name);
  std::string text = write_manifest(made.manifest);
  text.replace(text.find(from), from.size(), to);
  seal_bytes(made, text);
}
void manifest_field(const std::string& name, const std::string& where, const Json& value) {
  manifest(name, [&](Json& json) { json[Json::json_pointer(where)] = value; });
}
// The path of an entry, with its placement.
void manifest_path(const std::string& name, const std::string& path) {
  manifest("path-" + name, [&](Json& json) {
    json["environment"]["placements"][0]["entry"] = path;
    json["entries"][0]["path"] = path;
  });
}

// The same with two entries' paths.
void two_paths(const std::string& name, const std::string& first, const std::string& second) {
  manifest("path-" + name, [&](Json& json) {
    for (int i = 0; i < 2; ++i)
      json["environment"]["placements"][i]["entry"] = json["entries"][i]["path"] = i == 0 ? first : second;
  });
}

// A rightly signed root that `change` made wrong.
void root(const std::string& name, const std::function<void(Json&)>& change, const Keys& signers = {&key}) {
  Json json = parse_json(write_root(make_root({&key, &other}, {&key})), "");
  change(json);
  under("root-" + name, {signed_document(json.dump(), signers, kRootPayloadType)}, {&key});
}
void root_field(const std::string& name, const std::string& where, const Json& value) {
  root(name, [&](Json& json) { json[Json::json_pointer(where)] = value; });
}
// A good root with something of its own.
Envelope root_with(const std::function<void(Root&)>& change, Root base, const Keys& signers) {
  change(base);
  return signed_root(base, signers);
}

void flip(const fs::path& file, std::uint64_t bit) {
  std::string bytes = read_file(file);
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  write_file(file, bytes);
}

void edit_seal(const std::string& name, const std::function<void(std::string&)>& change) {
  const MadeBundle made = fresh("seal-" + name);
  std::string text = read_file(made.seal());
  change(text);
  write_file(made.seal(), text);
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.rfind(from), from.size(), to);
  return text;
}

void good_ones() {
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
  const MadeBundle scratch = make_bundle(out / "scratch", tiny(), key);
  const Digest identity = sha256(as_bytes(write_manifest(scratch.manifest)));
  accepts("revoked-bundle",
          [&](Root& root) { root.revoked_bundles[identity] = {.date = root.created, .reason = "bad wheel"}; });
  fs::remove_all(out / "scratch");
  const MadeBundle fips = make_bundle(out / "good-fips", tiny(), third);
  reseal(fips, {root_with([](Root& root) { root.profile = Profile::Fips; }, make_root({&third}, {&third}), {&third})},
         {&third});
  report("good-fips", parse_seal(read_file(fips.seal()), "").roots[0].digest());
}

void bad_seals() {
  report("seal-other-root", make_bundle(out / "seal-other-root", tiny(), other).manifest.payload.chunk_list_digest);
  edit_seal("empty", [](std::string& s) { s.clear(); });
  edit_seal("root-only", [](std::string& s) { s.resize(s.find('\n') + 1); });
  edit_seal("manifest-only", [](std::string& s) { s.erase(0, s.find('\n') + 1); });
  edit_seal("swapped", [](std::string& s) { s = s.substr(s.find('\n') + 1) + s.substr(0, s.find('\n') + 1); });
  edit_seal("no-line-break", [](std::string& s) { s.pop_back(); });
  edit_seal("two-line-breaks", [](std::string& s) { s += '\n'; });
  edit_seal("carriage-return", [](std::string& s) { s.insert(s.size() - 1, "\r"); });
  edit_seal("nul", [](std::string& s) { s.insert(s.size() - 1, 1, '\0'); });
  edit_seal("space", [](std::string& s) { s = replaced(s, "\"payloadType\":", "\"payloadType\": "); });
  edit_seal("escape", [](std::string& s) { s = replaced(s, "vnd.", "\\u0076nd."); });
  edit_seal("unknown-key", [](std::string& s) { s = replaced(s, "\"payloadType\":", "\"note\":1,\"payloadType\":"); });
  edit_seal("duplicate-key",
            [](std::string& s) { s = replaced(s, "\"payloadType\":", "\"payloadType\":\"x\",\"payloadType\":"); });
  edit_seal("order-of-keys", [](std::string& s) {
    const std::size_t sig = s.rfind("\"sig\":"), spki = s.rfind("\"spki\":"), end = s.rfind('}', s.rfind('}') - 1);
    s = s.substr(0, sig) + s.substr(spki, end - spki) + "," + s.substr(sig, spki - 1 - sig) + s.substr(end);
  });
  edit_seal("stray-bits", [](std::string& s) {
    const std::size_t at = s.rfind("==\",\"payloadType");
    if (at != s.npos)
      ++s[at - 1];
    else
      s = replaced(s, "\",\"payloadType", "=\",\"payloadType");
  });
  edit_seal("signature-twice", [](std::string& s) {
    const std::size_t begin = s.rfind("{\"keyid\""), end = s.rfind("]}");
    s.insert(end, "," + s.substr(begin, end - begin));
  });
  edit_seal("signature-empty", [](std::string& s) {
    const std::size_t at = s.rfind("\"sig\":\"") + 7;
    s.erase(at, s.find('"', at) - at);
  });
  edit_seal("signature-of-root", [](std::string& s) {
    const auto field = [&](std::size_t at) { return s.substr(at + 7, s.find('"', at + 7) - at - 7); };
    s = replaced(s, field(s.rfind("\"sig\":\"")), field(s.find("\"sig\":\"")));
  });
  edit_seal("type", [](std::string& s) { s = replaced(s, "bundle.v1", "bundle.v2"); });
  const auto signatures = [](const std::string& name, const std::function<void(Envelope&)>& change) {
    const MadeBundle made = fresh("seal-" + name);
    Seal seal = parse_seal(read_file(made.seal()), "");
    change(seal.manifest);
    write_file(made.seal(), write_seal(seal));
  };
  const auto add = [](Envelope& e, Bytes spki, Bytes bytes) {
    const Digest id = sha256(spki);
    e.signatures[id] = {std::move(spki), std::move(bytes)};
  };
  signatures("garbage-beside-valid", [&](Envelope& e) { add(e, other.public_key().spki(), Bytes(64)); });
  signatures("garbage-sm2-beside-valid",
             [&](Envelope& e) { add(e, chinese.public_key().spki(), third.sign(message_of(e))); });
  signatures("short-ed25519", [&](Envelope& e) { add(e, other.public_key().spki(), Bytes(63)); });
  signatures("trailing-byte", [&](Envelope& e) {
    Bytes& bytes = e.signatures.begin()->second.bytes;
    while (bytes.size() != 72) bytes = key.sign(message_of(e));  // the longest: some programs read no further
    bytes.push_back(std::byte{0});
  });
  signatures("of-another-bundle", [&](Envelope& e) {
    const Envelope x = signed_document("{}", {&key}, kBundlePayloadType);
    e.signatures = x.signatures;
  });
  signatures("small-order-key", [&](Envelope& e) {
    Bytes spki = other.public_key().spki();
    std::fill(spki.end() - 32, spki.end(), std::byte{0});
    add(e, spki, Bytes(64));
  });
  signatures("small-order-key-one", [&](Envelope& e) {
    Bytes spki = other.public_key().spki();
    std::fill(spki.end() - 32, spki.end(), std::byte{0});
    spki[12] = std::byte{1};
    spki.back() = std::byte{0x80};
    add(e, spki, Bytes(64));
  });
  signatures("second-spelling-of-key", [&](Envelope& e) {
    Bytes spki = other.public_key().spki();
    std::fill(spki.end() - 32, spki.end(), std::byte{0xff});
    spki[12] = std::byte{0xee};
    add(e, spki, Bytes(64));
  });
  signatures("second-spelling-of-key-f", [&](Envelope& e) {
    Bytes spki = other.public_key().spki();
    std::fill(spki.end() - 32, spki.end(), std::byte{0xff});
    spki.back() = std::byte{0x7f};
    add(e, spki, Bytes(64));
  });
  for (const std::string y : {"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
                              "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"})
    signatures("order-8-key-" + y.substr(0, 2), [&](Envelope& e) {
      Bytes spki = *from_hex("302a300506032b6570032100" + y);
      add(e, spki, Bytes(64));
    });
  signatures("off-curve-key", [&](Envelope& e) {
    Bytes spki = third.public_key().spki();
    spki.back() ^= std::byte{1};
    add(e, spki, third.sign(message_of(e)));
  });
  signatures("cut-key", [&](Envelope& e) {
    Bytes spki = third.public_key().spki();
    spki.pop_back();
    add(e, spki, third.sign(message_of(e)));
  });
  signatures("compressed-key", [&](Envelope& e) {
    Bytes spki = *from_hex(
        "3039301306072a8648ce3d020106082a8648ce3d030107032200"
        "02"
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
    add(e, spki, third.sign(message_of(e)));
  });
  signatures("no-key", [&](Envelope& e) { add(e, Bytes(20, std::byte{7}), Bytes(64)); });
  const bundle::detail::KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(rsa.get(), &der);
  const Bytes rsa_spki = bundle::detail::take_der(der, size);
  signatures("good-rsa-beside-valid", [&](Envelope& e) { add(e, rsa_spki, Bytes(256, std::byte{1})); });
  signatures("rsa-only", [&](Envelope& e) {
    e.signatures.clear();
    add(e, rsa_spki, Bytes(256, std::byte{1}));
  });
  root("rsa-labelled-ed25519", [&](Json& j) {
    j["keys"].push_back({{"algorithm", "ed25519"}, {"keyid", sha256(rsa_spki).hex()}, {"spki", to_base64(rsa_spki)}});
    std::sort(j["keys"].begin(), j["keys"].end(), [](const Json& a, const Json& b) { return a["keyid"] < b["keyid"]; });
  });
  const MadeBundle typed = fresh("seal-signed-other-type");
  seal_bytes(typed, write_manifest(typed.manifest), "application/vnd.sealift.bundle.v9+json");
  const MadeBundle rooted = fresh("seal-signed-as-root");
  seal_bytes(rooted, write_manifest(rooted.manifest), kRootPayloadType);
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

void bad_manifests() {
  manifest_text("bom", "{", "\xef\xbb\xbf{");
  manifest_text("duplicate-key", "{\"channel\"", "{\"channel\":\"x\",\"channel\"");
  manifest_text("float", "\"version\":7", "\"version\":7.0");
  manifest_text("exponent", "\"version\":7", "\"version\":7e0");
  manifest_text("leading-zero", "\"version\":7", "\"version\":07");
  manifest_text("space", ",\"version\"", ", \"version\"");
  manifest_text("line-break", "\"version\":7}", "\"version\":7}\n");
  manifest_text("nul-behind", "\"version\":7}", std::string("\"version\":7}\0", 13));
  manifest_text("escaped-letter", "\"tiny\"", "\"\\u0074iny\"");
  manifest_text("bad-utf8", "files/b", "files/\xff");
  manifest_text("overlong-utf8", "files/b", "files/\xc0\xae");
  manifest_text("deep", "\"version\":7", "\"version\":" + std::string(40, '[') + std::string(40, ']'));
  manifest_text("cut", "\"version\":7}", "");
  for (const auto& [name, where, value] : std::initializer_list<std::tuple<const char*, const char*, Json>>{
           {"unknown-key", "/extra", 1},
           {"format-1", "/format", 1},
           {"format-3", "/format", 3},
           {"level-7", "/installer_level", 7},
           {"good-level-2", "/installer_level", 2},
           {"good-level-0", "/installer_level", 0},
           {"name-bad", "/name", "../tiny"},
           {"name-other", "/name", "other"},
           {"version-negative", "/version", -1},
           {"version-large", "/version", 9007199254740992u},
           {"version-other", "/version", 8},
           {"floor-above", "/rollback_floor", 8},
           {"created-bad", "/created", "2026-13-01T00:00:00Z"},
           {"created-offset", "/created", "2026-01-01T00:00:00+00:00"},
           {"glibc-bad", "/target/glibc", "2"},
           {"good-glibc-three", "/target/glibc", "2.2.5"},
           {"glibc-huge", "/target/glibc", "2.4294967296"},
           {"arch-bad", "/target/arch", "x86/64"},
           {"digest-md5", "/payload/digest", "md5"},
           {"digest-sha1", "/payload/digest", "sha1"},
           {"digest-empty", "/payload/digest", ""},
           {"digest-sm3", "/payload/digest", "sm3"},
           {"chunk-odd", "/payload/chunk_size", 5000},
           {"chunk-small", "/payload/chunk_size", 2048},
           {"chunk-large", "/payload/chunk_size", 33554432},
           {"chunk-zero", "/payload/chunk_size", 0},
           {"chunk-other", "/payload/chunk_size", 8192},
           {"size-huge", "/payload/size", 1125899906842625u},
           {"size-more", "/payload/size", 1 << 20},
           {"size-zero", "/payload/size", 0},
           {"many-chunks", "/payload/size", 8589938688u},
           {"list-digest-short", "/payload/chunk_list_digest", "00"},
           {"list-digest-upper", "/payload/chunk_list_digest", std::string(64, 'A')},
           {"list-digest-other", "/payload/chunk_list_digest", std::string(64, '0')},
           {"no-volumes", "/payload/volumes", Json::array()},
           {"volume-name", "/payload/volumes/0/name", "tiny-7.vol002"},
           {"volume-escapes", "/payload/volumes/0/name", "../tiny-7.vol001"},
           {"volume-partial", "/payload/volumes/0/size", 8191},
           {"volume-zero", "/payload/volumes/0/size", 0},
           {"volume-huge", "/payload/volumes/0/size", 9007199254740991u},
           {"kind-unknown", "/entries/0/kind", "sparse"},
           {"encoding-unknown", "/entries/0/encoding", "lz4"},
           {"size-differs", "/entries/0/size", 1},
           {"sha-differs", "/entries/0/sha256", std::string(64, '1')},
           {"offset-outside", "/entries/0/offset", 1 << 30},
           {"stored-outside", "/entries/1/stored_size", 1 << 30},
           {"offset-huge", "/entries/1/offset", 9007199254740991u},
           {"installed-huge", "/entries/0/installed_size", 1125899906842625u},
           {"executable-number", "/entries/0/executable", 1},
           {"interpreter-absolute", "/environment/interpreter", "/bin/sh"},
           {"site-packages-up", "/environment/site_packages", "a/../b"},
           {"import-bad", "/environment/imports", Json::array({"os;x"})},
           {"placement-unknown", "/environment/placements/0/entry", "files/none"},
           {"placement-up", "/environment/placements/0/into", "../x"},
           {"file-without-place", "/environment/placements/0/into", ""},
           {"wheel-with-place", "/environment/placements/2/into", "x"},
           {"place-reserved", "/environment/placements/0/into", "Generation.json"},
           {"places-equal", "/environment/placements/0/into", "SHARE/b"},
           {"good-other-place", "/environment/placements/0/into", "elsewhere/x"}})
    manifest_field(name, where, value);
  // What came with level 2.
  const Json runtime = {{"glibc", "2.36"}, {"kernel", "3.2.0"}};
  const auto level_2 = [](const char* name, const char* where, const Json& value) {
    manifest(name, [&](Json& j) {
      j["installer_level"] = 2;
      j[Json::json_pointer(where)] = value;
    });
  };
  level_2("good-runtime", "/environment/runtime", runtime);
  level_2("good-driver", "/target/driver_floor", "525.60.13");
  level_2("runtime-text", "/environment/runtime", "carried");
  level_2("runtime-empty", "/environment/runtime", Json::object());
  level_2("runtime-glibc", "/environment/runtime", {{"glibc", "2"}, {"kernel", "3.2.0"}});
  level_2("runtime-kernel", "/environment/runtime", {{"glibc", "2.36"}, {"kernel", "3."}});
  level_2("runtime-more", "/environment/runtime", {{"glibc", "2.36"}, {"kernel", "3.2"}, {"loader", "ld.so"}});
  level_2("driver-word", "/target/driver_floor", "newest");
  level_2("driver-empty", "/target/driver_floor", "");
  level_2("driver-dots", "/target/driver_floor", "1.2.3.4.5");
  level_2("driver-long", "/target/driver_floor", "1234567890");
  // And with level 4.
  const auto level_4 = [](const char* name, const char* where, const Json& value) {
    manifest(name, [&](Json& j) {
      j["installer_level"] = 4;
      j[Json::json_pointer(where)] = value;
    });
  };
  level_4("good-gpu-code", "/target/gpu_code", {{"a", "sm_75"}, {"torch-2.11.0", "sm_90a compute_90"}});
  level_4("good-overruled", "/target/overruled", {"driver", "gpu"});
  level_4("gpu-code-empty", "/target/gpu_code", Json::object());
  level_4("gpu-code-list", "/target/gpu_code", {"sm_75"});
  level_4("gpu-code-name", "/target/gpu_code", {{"a b", "sm_75"}});
  level_4("gpu-code-long", "/target/gpu_code", {{"a", std::string(1001, 'a')}});
  level_4("good-gpu-code-long", "/target/gpu_code", {{"a", std::string(1000, 'a')}});
  level_4("gpu-code-words", "/target/gpu_code", {{"a", "SM 75"}});
  level_4("overruled-empty", "/target/overruled", Json::array());
  level_4("overruled-unsorted", "/target/overruled", {"gpu", "driver"});
  level_4("overruled-twice", "/target/overruled", {"gpu", "gpu"});
  manifest_field("gpu-code-level-1", "/target/gpu_code", {{"a", "sm_75"}});
  manifest_field("overruled-level-1", "/target/overruled", Json::array({"gpu"}));
  manifest_field("runtime-level-1", "/environment/runtime", runtime);
  manifest_field("driver-level-1", "/target/driver_floor", "580");
  manifest_path("absolute", "/files/a");
  manifest_path("up", "files/../a");
  manifest_path("dot", "files/./a");
  manifest_path("empty-part", "files//a");
  manifest_path("slash-behind", "files/a/");
  manifest_path("empty", "");
  manifest_path("backslash", "files\\a");
  manifest_path("control", "files/a\x01");
  manifest_path("delete", "files/a\x7f");
  manifest_path("long-part", "files/" + std::string(250, '"') + "aaaaaa");
  manifest_path("good-long-part", "files/" + std::string(250, '"') + "aaaaa");
  manifest_path("drive", "C:/a");
  manifest_path("unsorted", "zz");
  manifest_path("twin", "files/b");
  manifest_path("case", "files/B");
  manifest_path("above", "files");
  manifest_path("good-latin", "files/a\u00c4\u00df\u00d7\u00f7\u00ff");
  manifest_path("good-russian", "files/a\u0410\u042f\u043f\u0440\u044f");
  manifest_path("good-japanese", "files/a\u3042\u30a2\u30fc\u6f22");
  manifest_path("good-chinese", "files/a\u4e2d\u6587\u9fa5");
  manifest_path("good-korean", "files/a\uac00\ud7a3");
  manifest_path("greek", "files/a\u03b1");
  manifest_path("composed-otherwise", "files/aa\u0308");
  two_paths("latin-case", "files/\u00c4", "files/\u00e4");
  two_paths("sharp-s", "files/ss", "files/\u00df");
  two_paths("russian-case", "files/\u0419", "files/\u0439");
  two_paths("russian-case-far", "files/\u042e", "files/\u044e");
  two_paths("good-no-case", "files/\u00d7", "files/\u00f7");
  two_paths("good-kana", "files/\u3042", "files/\u30a2");
  manifest_path("good-strange", "files/$(touch x) `y` ' {a},{[b]: * ?\"");
  manifest("path-below-not-next", [](Json& j) {  // "a", "a-b", "a/b": the last lies below the first
    for (int i = 0; i < 3; ++i)
      j["entries"][i]["path"] = j["environment"]["placements"][i]["entry"] = std::array{"a", "a-b", "a/b"}[i];
  });
  manifest("offset-overlap", [](Json& j) { j["entries"][1]["offset"] = j["entries"][0]["offset"].get<int>() + 1; });
  manifest("blob-shared-otherwise", [](Json& j) { j["entries"][1]["offset"] = j["entries"][0]["offset"]; });
  manifest("offset-within-a-gap",
           [](Json& j) { j["entries"][0]["offset"] = j["entries"][0]["offset"].get<int>() - 512; });
  manifest("stored-less", [](Json& j) {
    j["entries"][0]["stored_size"] = j["entries"][0]["size"] = j["entries"][0]["size"].get<int>() - 1;
  });
  manifest("good-blob-shared", [](Json& j) {
    j["entries"].push_back(j["entries"][0]);
    j["entries"].back()["path"] = "zz";
  });
  manifest("installed-sum", [](Json& j) {
    for (Json& e : j["entries"]) e["installed_size"] = 600'000'000'000'000u;
  });
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, Json>>{
           {"name", {{"name", "../x"}, {"sha256", std::string(64, '0')}, {"size", 1}}},
           {"size", {{"name", "x"}, {"sha256", std::string(64, '0')}, {"size", 4294967297u}}},
           {"of-the-bundle", {{"name", "tiny-7.seal"}, {"sha256", std::string(64, '0')}, {"size", 1}}},
           {"good-left-out", {{"name", "gone"}, {"sha256", std::string(64, '0')}, {"size", 1}}}})
    manifest_field(std::string("companion-") + name, "/companions", Json::array({value}));
  for (const char* what : {"good-as-signed", "changed", "longer", "link", "folder"}) {
    MadeBundle made = fresh(std::string("companion-") + what);
    made.manifest.companions = {{.name = "tool", .size = 4, .sha256 = sha256(as_bytes("tool"))}};
    reseal(made, {one_key_root(key)}, {&key});
    const std::string w = what;
    if (w == "link")
      fs::create_symlink("tiny-7.seal", made.folder / "tool");
    else if (w == "folder")
      fs::create_directory(made.folder / "tool");
    else
      write_file(made.folder / "tool", w == "changed" ? "evil" : w == "longer" ? "tool!" : "tool");
  }
}

// A delta, and a wheel with a file that another entry owns, each good and with one fault.
void deltas() {
  const auto made = [](const std::string& name, const std::function<void(TinyBundle&)>& change,
                       const std::function<void(Json&)>& fault) {
    TinyBundle start = tiny();
    change(start);
    const MadeBundle bundle = fresh(name, start);
    Json json = parse_json(write_manifest(bundle.manifest), "");
    fault(json);
    seal_bytes(bundle, json.dump());
  };
  const auto nothing = [](Json&) {};
  const auto absent = [](TinyBundle& b) { b.items[1].absent = true; };  // files/"a", the first entry
  made("good-delta", absent, nothing);
  made(
      "good-delta-of-all",
      [](TinyBundle& b) {
        for (TinyItem& item : b.items) item.absent = true;
      },
      nothing);
  made("delta-offset", absent, [](Json& j) { j["entries"][0]["offset"] = 512; });
  made("delta-stored", absent, [](Json& j) { j["entries"][0]["stored_size"] = 5000; });
  made("delta-encoding", absent, [](Json& j) { j["entries"][0]["encoding"] = "identity"; });
  made("delta-false", absent, [](Json& j) { j["entries"][0]["absent"] = false; });
  made("delta-neither", absent, [](Json& j) { j["entries"][0].erase("absent"); });
  made("delta-no-content", absent, [](Json& j) { j["entries"][0].erase("content"); });
  made("delta-content-bad", absent, [](Json& j) { j["entries"][0]["content"] = "x"; });
  made("content-carried", absent, [](Json& j) { j["entries"][1]["content"] = std::string(64, '0'); });
  made("delta-no-base", absent, [](Json& j) { j.erase("base"); });
  made("delta-base-bad", absent, [](Json& j) { j["base"] = "x"; });
  made("delta-level", absent, [](Json& j) { j["installer_level"] = 1; });
  const auto patch = [](TinyBundle& b) {  // of the wheel, the last entry; nobody here looks into it
    b.items[0].encoding = Encoding::Patch, b.items[0].patch = std::string(5000, 'p');
    b.items[0].built_on = sha256(as_bytes("an older wheel"));
  };
  made("good-patch", patch, nothing);
  made("patch-no-content", patch, [](Json& j) { j["entries"].back().erase("base"); });
  made("patch-content-bad", patch, [](Json& j) { j["entries"].back()["base"] = "x"; });
  made("patch-of-nothing", patch, [](Json& j) { j["entries"].back()["encoding"] = "zstd"; });
  made("patch-of-a-file", patch,
       [](Json& j) { j["entries"][0]["encoding"] = "patch", j["entries"][0]["base"] = std::string(64, '0'); });
  made("patch-no-base", patch, [](Json& j) { j.erase("base"); });
  made("patch-level", patch, [](Json& j) { j["installer_level"] = 4; });
  made("patch-absent", patch, [](Json& j) { j["entries"].back()["absent"] = true; });
  const auto built = [](TinyBundle& b) { b.items[0].build = WheelBuild::Unsandboxed; };
  const auto word = [](const Json& value) { return [value](Json& j) { j["entries"].back()["built"] = value; }; };
  made("good-unsandboxed", built, nothing);
  made("good-sandboxed", built, word("sandboxed"));
  made(
      "good-built-and-absent", [&](TinyBundle& b) { absent(b), built(b); }, nothing);
  made(
      "good-built-patch", [&](TinyBundle& b) { patch(b), built(b); }, nothing);
  made("built-unknown", built, word("elsewhere"));
  made("built-number", built, word(1));
  made("built-level", built, [](Json& j) { j["installer_level"] = 5; });
  made("built-file", built, [](Json& j) { j["entries"][0]["built"] = "sandboxed"; });
  made("delta-kind", absent, [](Json& j) { j["entries"][0]["kind"] = "sparse"; });
  made(
      "base-alone", [](TinyBundle&) {}, [](Json& j) { j["base"] = std::string(64, '0'), j["installer_level"] = 2; });
  const auto out = [](TinyBundle& b) { b.items[0].left_out = {"bin/x", "lib/y \"z\""}; };  // of the wheel, placement 2
  const auto list = [](const Json& value) {
    return [value](Json& j) { j["environment"]["placements"][2]["left_out"] = value; };
  };
  made("good-left-out", out, nothing);
  made("left-out-level", out, [](Json& j) { j["installer_level"] = 1; });
  made("left-out-none", out, list(Json::array()));
  made("left-out-twice", out, list(Json::array({"bin/x", "bin/x"})));
  made("left-out-unsorted", out, list(Json::array({"b", "a"})));
  made("left-out-up", out, list(Json::array({"../x"})));
  made("left-out-number", out, list(Json::array({1})));
  const auto starts = [](TinyBundle& b) { b.startup_files = {sha256(as_bytes("b")), sha256(as_bytes("a"))}; };
  const auto startup = [](const Json& value) { return [value](Json& j) { j["environment"]["startup"] = value; }; };
  const std::string low(64, '0'), high(64, 'f');
  made(
      "good-startup", [](TinyBundle& b) { b.startup_files = {sha256(as_bytes("a"))}; }, nothing);
  made("good-startup-of-two", starts, startup(Json::array({low, high})));
  made("startup-level", starts, [](Json& j) {
    j["installer_level"] = 2;
    j["environment"]["startup"] = Json::array({std::string(64, '0')});
  });
  made("startup-none", starts, startup(Json::array()));
  made("startup-twice", starts, startup(Json::array({low, low})));
  made("startup-unsorted", starts, startup(Json::array({high, low})));
  made("startup-number", starts, startup(Json::array({1})));
  made("startup-name", starts, startup(Json::array({"a.pth"})));
  made("left-out-of-file", out, [](Json& j) { j["environment"]["placements"][0]["left_out"] = Json::array({"a"}); });
}

// A good bundle with recovery data in two files, which `change` damages.
void recovery_data() {
  TinyBundle with = tiny();
  with.recovery = 60;
  const auto made = [&](const std::string& name, const std::function<void(const MadeBundle&)>& change) {
    change(fresh("recovery-" + name, with));
  };
  const auto listed = [&](const std::string& name, const std::string& where, const Json& value) {
    made("manifest-" + name, [&](const MadeBundle& m) {
      Json json = parse_json(write_manifest(m.manifest), "");
      json[Json::json_pointer(where)] = value;
      seal_bytes(m, json.dump());
    });
  };
  made("good-whole", [](const MadeBundle&) {});
  made("good-left-out", [](const MadeBundle& m) {
    for (std::size_t i = 0; i < m.manifest.payload.recovery->files.size(); ++i) fs::remove(m.recovery(i));
    fs::remove(m.recovery_list());
  });
  made("good-without-one", [](const MadeBundle& m) { fs::remove(m.recovery(1)); });
  made("list-missing", [](const MadeBundle& m) { fs::remove(m.recovery_list()); });
  made("list-flipped", [](const MadeBundle& m) { flip(m.recovery_list(), 9); });
  made("list-short", [](const MadeBundle& m) { fs::resize_file(m.recovery_list(), 32); });
  made("flipped", [](const MadeBundle& m) { flip(m.recovery(1), fs::file_size(m.recovery(1)) * 8 - 1); });
  made("short", [](const MadeBundle& m) { fs::resize_file(m.recovery(0), fs::file_size(m.recovery(0)) - 1); });
  made("link", [](const MadeBundle& m) {
    fs::rename(m.recovery(0), m.folder / "x");
    fs::create_symlink("x", m.recovery(0));
  });
  made("extra", [](const MadeBundle& m) { write_file(m.folder / "tiny-7.rec009", "x"); });
  made("volume-flipped", [](const MadeBundle& m) { flip(m.volume(0), 8); });
  made("volume-missing", [](const MadeBundle& m) { fs::remove(m.volume(1)); });
  write_file(fresh("recovery-of-none").folder / "tiny-7.rec001", "x");
  listed("level-4", "/installer_level", 4);
  listed("no-groups", "/payload/recovery/groups", 0);
  listed("many-groups", "/payload/recovery/groups", 2097152);
  listed("groups-wrap", "/payload/recovery/groups", 9007199254740991u);
  listed("no-parity", "/payload/recovery/parity", 0);
  listed("parity-256", "/payload/recovery/parity", 256);
  listed("parity-255", "/payload/recovery/parity", 255);
  listed("parity-more", "/payload/recovery/parity", 9);
  listed("no-files", "/payload/recovery/files", Json::array());
  listed("file-name", "/payload/recovery/files/0/name", "tiny-7.rec002");
  listed("file-size", "/payload/recovery/files/0/size", 4095);
  listed("file-zero", "/payload/recovery/files/0/size", 0);
  listed("list-digest", "/payload/recovery/list_digest", std::string(64, '0'));
  listed("more-keys", "/payload/recovery/code", "xor");
}

void bad_folders() {
  const auto folder = [](const std::string& name, const std::function<void(const MadeBundle&)>& change) {
    change(fresh("folder-" + name));
  };
  const auto cut = [](const fs::path& file, long by) {
    fs::resize_file(file, static_cast<std::uintmax_t>(static_cast<long>(fs::file_size(file)) + by));
  };
  folder("missing-volume", [](const MadeBundle& m) { fs::remove(m.volume(1)); });
  folder("short-volume", [&](const MadeBundle& m) { cut(m.volume(1), -1); });
  folder("long-volume", [&](const MadeBundle& m) { cut(m.volume(1), 1); });
  folder("flipped-first", [](const MadeBundle& m) { flip(m.volume(0), 0); });
  folder("flipped-last", [](const MadeBundle& m) {
    const fs::path v = m.volume(m.manifest.payload.volumes.size() - 1);
    flip(v, fs::file_size(v) * 8 - 1);
  });
  folder("swapped-volumes", [](const MadeBundle& m) {
    fs::rename(m.volume(0), m.folder / "x");
    fs::rename(m.volume(1), m.volume(0));
    fs::rename(m.folder / "x", m.volume(1));
  });
  folder("link-volume", [](const MadeBundle& m) {
    fs::rename(m.volume(0), m.folder / "x");
    fs::create_symlink("x", m.volume(0));
  });
  folder("dangling-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    fs::create_symlink("nowhere", m.volume(0));
  });
  folder("pipe-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    ::mkfifo(m.volume(0).c_str(), 0600);
  });
  folder("folder-volume", [](const MadeBundle& m) {
    fs::remove(m.volume(0));
    fs::create_directory(m.volume(0));
  });
  folder("extra-volume", [](const MadeBundle& m) { write_file(m.folder / "tiny-7.vol009", "x"); });
  folder("extra-alike", [](const MadeBundle& m) { write_file(m.folder / "ti.y-7.vol001", "x"); });
  folder("extra-hidden", [](const MadeBundle& m) { write_file(m.folder / ".vol001", "x"); });
  folder("extra-line-break", [](const MadeBundle& m) { write_file(m.folder / "x\ntiny-7.vol001", "x"); });
  folder("extra-list", [](const MadeBundle& m) { write_file(m.folder / "other.chunks", "x"); });
  folder("extra-seal", [](const MadeBundle& m) { fs::copy_file(m.seal(), m.folder / "other-1.seal"); });
  folder("hidden-seal", [](const MadeBundle& m) { fs::copy_file(m.seal(), m.folder / ".other.seal"); });
  folder("good-extra", [](const MadeBundle& m) { write_file(m.folder / "README.volumes.txt", "x"); });
  folder("seal-renamed", [](const MadeBundle& m) { fs::rename(m.seal(), m.folder / "tiny-8.seal"); });
  folder("seal-missing", [](const MadeBundle& m) { fs::remove(m.seal()); });
  folder("seal-link", [](const MadeBundle& m) {
    fs::rename(m.seal(), m.folder / "x");
    fs::create_symlink("x", m.seal());
  });
  folder("seal-pipe", [](const MadeBundle& m) {
    fs::remove(m.seal());
    ::mkfifo(m.seal().c_str(), 0600);
  });
  folder("seal-too-large", [](const MadeBundle& m) { fs::resize_file(m.seal(), kMaxSealSize + 1); });
  folder("list-missing", [](const MadeBundle& m) { fs::remove(m.chunks()); });
  folder("list-short", [&](const MadeBundle& m) { cut(m.chunks(), -32); });
  folder("list-long", [&](const MadeBundle& m) { cut(m.chunks(), 1); });
  folder("list-link", [](const MadeBundle& m) {
    fs::rename(m.chunks(), m.folder / "x");
    fs::create_symlink("x", m.chunks());
  });
  folder("list-swapped", [](const MadeBundle& m) {
    std::string s = read_file(m.chunks());
    std::rotate(s.begin(), s.begin() + 32, s.end());
    write_file(m.chunks(), s);
  });
  const TempDir dir;
  const MadeBundle made = make_bundle(dir / "sizes", tiny(), key);
  const std::uint64_t seal_bits = read_file(made.seal()).size() * 8, list_bits = read_file(made.chunks()).size() * 8;
  for (std::uint64_t i = 0; i < 70; ++i) {
    const MadeBundle flipped = fresh("flip-seal-" + std::to_string(i));
    flip(flipped.seal(), i * 2654435761u % std::min<std::uint64_t>(seal_bits, read_file(flipped.seal()).size() * 8));
  }
  for (std::uint64_t i = 0; i < 8; ++i)
    flip(fresh("flip-list-" + std::to_string(i)).chunks(), i * 2654435761u % list_bits);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  out = argv[1];
  good_ones();
  bad_seals();
  bad_roots();
  bad_manifests();
  deltas();
  recovery_data();
  bad_folders();
}
