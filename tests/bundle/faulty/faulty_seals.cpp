// SPDX-License-Identifier: Apache-2.0
// Faults of the seal: how it is spelled, and malformed signatures.
#include "tests/bundle/faulty/faulty_bundles.hpp"

#include <algorithm>

#include "bundle/trust/openssl_keys.hpp"

namespace sealift::test {

namespace {

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

}  // namespace

void bad_seals() {
  report("seal-other-root",
         make_bundle(faulty_folder / "seal-other-root", tiny(), other).manifest.payload.chunk_list_digest);
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
  const bundle::KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}));
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

}  // namespace sealift::test
