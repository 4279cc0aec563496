// SPDX-License-Identifier: Apache-2.0
// From the pinned root to the newest one, and what counts as enough signatures: thresholds, kinds, rotation,
// revocation.
#include "sealift/bundle/trust/root_chain.hpp"

#include "bundle/core/openssl.hpp"
#include "bundle/trust/openssl_keys.hpp"
#include "sealift/bundle/trust/seal.hpp"
#include "tests/support/bit_step.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_root.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

using Signers = std::vector<const PrivateKey*>;

// Three people, 2 of 3 for roots, and a release key.
struct Ceremony {
  PrivateKey a = PrivateKey::generate(), b = PrivateKey::generate(), c = PrivateKey::generate(),
             release = PrivateKey::generate();
  Root first = [this] {
    Root root = make_root({&a, &b, &c}, {&release});
    root.roles["root"].threshold = 2;
    return root;
  }();
  Envelope one = signed_root(first, {&a, &b});
};

TrustState accept(const TrustState& state, const std::vector<Envelope>& chain) {
  return follow_roots(state, chain, "seal");
}
std::uint64_t version_of(const TrustState& state) {
  return parse_root(state.root, "state").version;
}

std::vector<Digest> release_signers(const Root& root, const Envelope& document) {
  return require_role(root, "release", check_signatures(document, "seal"), "seal");
}
Envelope manifest(const Signers& keys) {
  return signed_document("{}", keys, kBundlePayloadType);
}

}  // namespace

TEST_CASE("a pinned root is found in the chain, and the ones that follow it are accepted") {
  const Ceremony site;
  const Envelope two = signed_root(next_root(site.first), {&site.b, &site.c});
  const Envelope three = signed_root(next_root(next_root(site.first)), {&site.a, &site.c});
  CHECK(version_of(accept(pinned(site.one).state, {site.one})) == 1);
  CHECK(version_of(accept(pinned(site.one).state, {site.one, two, three})) == 3);
  CHECK(version_of(accept(pinned(two).state, {site.one, two, three})) == 3);
  const TrustState at_two = accept(pinned(site.one).state, {site.one, two});
  CHECK(version_of(accept(at_two, {three})) == 3);
  CHECK(version_of(accept(at_two, {site.one, two, three})) == 3);
  CHECK(accept(at_two, {site.one}) == at_two);  // a bundle from before the rotation changes nothing
  const Envelope stranger = one_key_root(PrivateKey::generate());
  CHECK_REFUSED(accept(pinned(site.one).state, {stranger}), Signature, stranger.digest().hex());
  CHECK_REFUSED(accept({}, {site.one}), Signature, "no root is pinned");
}

TEST_CASE("a root needs its own threshold, and the old root's") {
  const Ceremony site;
  CHECK_REFUSED(accept(pinned(site.one).state, {signed_root(site.first, {&site.a})}), Signature,
                "1 of 2 root signatures");
  CHECK_REFUSED(accept(pinned(site.one).state, {signed_root(site.first, {})}), Signature, "0 of 2 root signatures");
  // Thieves who write themselves into the next root: the new keys alone, or with a minority of the old ones.
  const PrivateKey thief = PrivateKey::generate(), second = PrivateKey::generate();
  Root taken = next_root(make_root({&thief, &second}, {&thief}));
  taken.roles["root"].threshold = 2;
  CHECK_REFUSED(accept(pinned(site.one).state, {site.one, signed_root(taken, {&thief, &second})}), Signature,
                "0 of 2 root signatures");
  CHECK_REFUSED(accept(pinned(site.one).state, {site.one, signed_root(taken, {&thief, &second, &site.a})}), Signature,
                "1 of 2 root signatures");
  // The old ones alone are not enough either: nobody may have the new keys.
  CHECK_REFUSED(accept(pinned(site.one).state, {site.one, signed_root(taken, {&site.a, &site.b})}), Signature,
                "0 of 2 root signatures");
  CHECK(version_of(
            accept(pinned(site.one).state, {site.one, signed_root(taken, {&thief, &second, &site.a, &site.b})})) == 2);
}

TEST_CASE("a root that skips a version, goes back, or stands in another's place is refused") {
  const Ceremony site;
  const Root second = next_root(site.first), third = next_root(second);
  const Envelope two = signed_root(second, {&site.a, &site.b}), three = signed_root(third, {&site.a, &site.b});
  const TrustState at_one = accept(pinned(site.one).state, {site.one});
  CHECK_REFUSED(accept(at_one, {site.one, three}), Signature, "gap");
  CHECK_REFUSED(accept(at_one, {three}), Signature, "gap");
  CHECK(accept(at_one, {two, site.one}) == at_one);  // what stands before the accepted root is not looked at
  CHECK_REFUSED(accept(at_one, {two, two}), Signature, "gap");
  Root other = second;
  other.name = "other";
  const TrustState at_two = accept(at_one, {two});
  CHECK_REFUSED(accept(at_two, {signed_root(other, {&site.a, &site.b})}), Equivocation, two.digest().hex());
  CHECK_REFUSED(accept(at_two, {site.one, signed_root(other, {&site.a, &site.b})}), Equivocation, "another root");
  CHECK_REFUSED(accept(at_one, {one_key_root(PrivateKey::generate())}), Signature, "not those of the owner");
}

TEST_CASE("something else than a root is no root, even signed by root keys") {
  const Ceremony site;
  const Envelope disguised = signed_document(write_root(site.first), {&site.a, &site.b}, kBundlePayloadType);
  CHECK_REFUSED(read_root_chain({disguised}, "seal"), Format, "no root");
}

TEST_CASE("a chain with more signatures than seconds of work is refused before the first of them is looked at") {
  const Ceremony site;
  // None of these is a key: a refusal by Format means that one was looked at.
  Envelope stuffed = site.one;
  stuffed.signatures.clear();
  for (std::uint8_t i = 0; i < kMaxSignatures; ++i) {
    const Bytes bytes{std::byte{i}};
    stuffed.signatures[sha256(bytes)] = {.spki = bytes, .bytes = bytes};
  }
  const std::vector<Envelope> full(kMaxChainSignatures / kMaxSignatures, stuffed);
  CHECK_REFUSED(read_root_chain(full, "seal"), Format, "");  // no key of the first root
  std::vector<Envelope> over = full;
  over.push_back(site.one);
  CHECK_REFUSED(read_root_chain(over, "seal"), CannotCheck,
                std::to_string(kMaxChainSignatures + site.one.signatures.size()));
}

TEST_CASE("an expired root in the middle of a chain does not matter") {
  const Ceremony site;
  const Envelope two =
      signed_root(next_root(site.first, [](Root& root) { root.expires = "2026-01-02T00:00:00Z"; }), {&site.a, &site.b});
  const Envelope three = signed_root(next_root(next_root(site.first)), {&site.a, &site.b});
  CHECK(version_of(accept(pinned(site.one).state, {site.one, two, three})) == 3);
}

TEST_CASE("revocations stay: a root that takes one back is refused") {
  const Ceremony site;
  const Revocation why{.date = "2026-03-01T00:00:00Z", .reason = "stolen"};
  const Root second = next_root(site.first, [&](Root& root) { root.revoked_bundles[sha256({})] = why; });
  Root third = next_root(second);
  third.revoked_bundles.clear();
  CHECK_REFUSED(
      read_root_chain({site.one, signed_root(second, {&site.a, &site.b}), signed_root(third, {&site.a, &site.b})}, "s"),
      Signature, "takes a revocation back");
}

TEST_CASE("every flipped bit of a chain of roots is refused") {
  const PrivateKey owner = PrivateKey::generate(), next = PrivateKey::generate();
  const Root first = make_root({&owner}, {&owner}), second = next_root(make_root({&next}, {&owner}));
  const Envelope one = signed_root(first, {&owner});
  const std::string good = write_envelope(one) + write_envelope(signed_root(second, {&owner, &next}));
  const auto accept_text = [&](const std::string& text) { return accept(pinned(one).state, parse_roots(text, "s")); };
  CHECK(version_of(accept_text(good)) == 2);
  for (std::size_t bit = 0; bit < good.size() * 8; bit += kBitStep) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK_THROWS_AS(accept_text(bad), Error);
  }
}

TEST_CASE("a chain is at most 1024 roots of 512 KiB") {
  const std::string line = write_envelope(one_key_root(PrivateKey::generate()));
  std::string many;
  for (int i = 0; i < 1025; ++i) many += line;
  CHECK_REFUSED(parse_roots(many, "s"), Format, "more than 1024");
  CHECK(parse_roots(many.substr(line.size()), "s").size() == 1024);
  const std::string big = write_envelope(
      {.payload_type = std::string(kRootPayloadType), .payload = std::string(500'000, 'x'), .signatures = {}});
  CHECK_REFUSED(parse_roots(big, "s"), Format, "512 KiB");
  CHECK_REFUSED(parse_roots("", "s"), Format, "no root");
}

TEST_CASE("a threshold counts keys of the role, each once; others must hold and do not count") {
  const PrivateKey a = PrivateKey::generate(), b = PrivateKey::generate(), stranger = PrivateKey::generate();
  Root root = make_root({&a}, {&a, &b});
  root.roles["release"].threshold = 2;
  CHECK(release_signers(root, manifest({&a, &b})).size() == 2);
  CHECK(release_signers(root, manifest({&a, &b, &stranger})).size() == 2);
  CHECK_REFUSED(release_signers(root, manifest({&a})), Signature, "1 of 2 release signatures");
  CHECK_REFUSED(release_signers(root, manifest({&a, &stranger})), Signature, stranger.public_key().id().hex());
  CHECK_REFUSED(release_signers(root, manifest({})), Signature, "no signature at all");
  Envelope garbage = manifest({&a, &b});
  garbage.signatures.at(b.public_key().id()).bytes = Bytes(64, std::byte{7});
  CHECK_REFUSED(release_signers(root, garbage), Signature, "does not hold");
}

TEST_CASE("every combination of signers of a 2 of 3 role is judged right") {
  const PrivateKey a = PrivateKey::generate(), b = PrivateKey::generate(Algorithm::Sm2),
                   c = PrivateKey::generate(Algorithm::EcdsaP384);
  Root root = make_root({&a}, {&a, &b, &c});
  for (const bool need_sm2 : {false, true})
    for (unsigned set = 0; set < 8; ++set) {
      root.roles["release"].threshold = 2;
      root.roles["release"].algorithms = need_sm2 ? std::vector<std::string>{"sm2"} : std::vector<std::string>{};
      Signers signers;
      if (set & 1) signers.push_back(&a);
      if (set & 2) signers.push_back(&b);
      if (set & 4) signers.push_back(&c);
      CAPTURE(set);
      const bool enough = signers.size() >= 2 && (!need_sm2 || (set & 2) != 0);
      if (enough)
        CHECK(release_signers(root, manifest(signers)).size() == signers.size());
      else
        CHECK_THROWS_AS(release_signers(root, manifest(signers)), Error);
    }
}

TEST_CASE("two kinds are required: with one of them stripped or swapped for another key the rest is not enough") {
  const PrivateKey ed = PrivateKey::generate(), other = PrivateKey::generate(),
                   sm2 = PrivateKey::generate(Algorithm::Sm2);
  Root root = make_root({&ed}, {&ed, &other, &sm2});
  root.roles["release"].threshold = 2;
  root.roles["release"].algorithms = {"ed25519", "sm2"};
  CHECK(release_signers(root, manifest({&ed, &sm2})).size() == 2);
  CHECK_REFUSED(release_signers(root, manifest({&ed, &other})), Signature, "none of kind sm2");
  CHECK_REFUSED(release_signers(root, manifest({&sm2})), Signature, "none of kind ed25519");
}

TEST_CASE("a revoked key's signature holds and does not count, and the date is told") {
  const PrivateKey a = PrivateKey::generate(), stolen = PrivateKey::generate();
  Root root = make_root({&a}, {&a});
  root.revoked_keys[stolen.public_key().id()] = {.date = "2026-05-04T00:00:00Z", .reason = "laptop stolen"};
  CHECK_REFUSED(release_signers(root, manifest({&stolen})), Revoked, "revoked on 2026-05-04T00:00:00Z (laptop stolen)");
  CHECK(release_signers(root, manifest({&a, &stolen})) == std::vector{a.public_key().id()});
}

TEST_CASE(
    "a kind that this program does not know is cannot-check when it would decide, and no matter when it would not") {
  const PrivateKey a = PrivateKey::generate();
  const KeyHandle rsa(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", std::size_t{2048}));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(rsa.get(), &der);
  const Bytes spki = detail::take_der(der, size);
  const Digest later = sha256(spki);
  Root root = make_root({&a}, {&a});
  root.keys[later] = {.algorithm = "ml-dsa-65", .spki = spki};
  std::vector<Digest>& keys = root.roles["release"].keys;
  keys.insert(std::lower_bound(keys.begin(), keys.end(), later), later);
  root = parse_root(write_root(root), "root");
  Envelope both = manifest({&a});
  both.signatures[later] = {.spki = spki, .bytes = Bytes(3000)};
  CHECK(release_signers(root, both).size() == 1);
  root.roles["release"].threshold = 2;
  CHECK_REFUSED(release_signers(root, both), CannotCheck, later.hex());
  CHECK_REFUSED(release_signers(root, manifest({&a})), Signature, "1 of 2");
  root.roles["release"].algorithms = {"ml-dsa-65"};
  CHECK_REFUSED(release_signers(root, both), CannotCheck, "none of kind ml-dsa-65");
}

namespace {

// A chain as a stranger makes it: every root is signed, rightly, by 64 keys of the slowest kind.
struct StrangersChain {
  std::vector<PrivateKey> keys;
  std::vector<const PrivateKey*> all;
  std::vector<Envelope> roots;

  explicit StrangersChain(std::uint64_t from) {
    for (std::size_t i = 0; i < kMaxRootKeys; ++i) keys.push_back(PrivateKey::generate(Algorithm::EcdsaP384));
    for (const PrivateKey& key : keys) all.push_back(&key);
    Root root = make_root(all, {all[0]});
    for (root.version = from; roots.size() < 2; ++root.version) {
      roots.push_back({.payload_type = std::string(kRootPayloadType), .payload = write_root(root), .signatures = {}});
      for (const PrivateKey* key : all)  // not add_signature, which would check each
        roots.back().signatures[key->public_key().id()] = {.spki = key->public_key().spki(),
                                                           .bytes = key->sign(message_of(roots.back()))};
    }
  }
};

// The refusal, and how many signatures were checked on the way to it.
template <class Act>
std::pair<ErrorCode, std::uint64_t> cost_of(const Act& act) {
  const std::uint64_t before = signatures_checked();
  const ErrorCode code = refusal(act).code();
  return {code, signatures_checked() - before};
}

}  // namespace

TEST_CASE("roots that no key of the site has signed cost next to no signature checks, however many sign them") {
  const Ceremony site;
  const TrustState fresh = pinned(site.one).state, at_one = accept(fresh, {site.one});
  const StrangersChain second(2), first(1);
  const auto behind = [](Envelope root, const StrangersChain& chain) {
    std::vector<Envelope> all = {std::move(root)};
    all.insert(all.end(), chain.roots.begin(), chain.roots.end());
    return all;
  };
  using Cost = std::pair<ErrorCode, std::uint64_t>;
  CHECK(cost_of([&] { accept(fresh, first.roots); }) == Cost{ErrorCode::Signature, 0});
  CHECK(cost_of([&] { accept(at_one, first.roots); }) == Cost{ErrorCode::Signature, 0});
  CHECK(cost_of([&] { accept(at_one, second.roots); }) == Cost{ErrorCode::Signature, 0});
  CHECK(cost_of([&] { accept(at_one, behind(site.one, second)); }) == Cost{ErrorCode::Signature, 0});
  CHECK(cost_of([&] { accept(fresh, behind(site.one, second)); }) == Cost{ErrorCode::Signature, 2});  // root 1's own
  SUBCASE("also under the names of the site's own keys") {
    std::vector<Envelope> disguised = behind(site.one, second);
    for (const PrivateKey* key : {&site.a, &site.b, &site.c})
      disguised[1].signatures[key->public_key().id()] = {.spki = key->public_key().spki(), .bytes = Bytes(64)};
    CHECK(cost_of([&] { accept(at_one, disguised); }) == Cost{ErrorCode::Signature, 1});
  }
  SUBCASE("and a root that the site's keys have signed, again and again") {
    CHECK(cost_of([&] { accept(at_one, {site.one, site.one, site.one}); }) == Cost{ErrorCode::Signature, 2});
  }
  SUBCASE("and a bundle's manifest") {
    Envelope strangers{.payload_type = std::string(kBundlePayloadType), .payload = "{}", .signatures = {}};
    for (const PrivateKey* key : second.all)
      strangers.signatures[key->public_key().id()] = {.spki = key->public_key().spki(), .bytes = Bytes(104)};
    CHECK(cost_of([&] { check_role(site.first, "release", strangers, "seal"); }) == Cost{ErrorCode::Signature, 0});
  }
}

TEST_CASE("links before the accepted root are not looked at, and nothing of a root is parsed before it is signed") {
  const Ceremony site;
  const TrustState at_one = accept(pinned(site.one).state, {site.one});
  const Envelope two = signed_root(next_root(site.first), {&site.a, &site.b});
  const Envelope junk{.payload_type = "x", .payload = "{not json", .signatures = {}};
  CHECK(version_of(accept(at_one, {junk, site.one, two})) == 2);
  CHECK(version_of(accept(pinned(two).state, {junk, site.one, two})) == 2);
  Envelope unsigned_junk = junk;
  unsigned_junk.payload_type = kRootPayloadType;
  CHECK_REFUSED(accept(at_one, {site.one, unsigned_junk}), Signature, "no signature at all");  // and not Format
  CHECK_REFUSED(accept(at_one, {unsigned_junk}), Format, "");
  CHECK_REFUSED(accept(at_one, {site.one, signed_document("{not json", {&site.a, &site.b}, kRootPayloadType)}), Format,
                "");
}

TEST_CASE("a stranger's signature that is broken is refused once the document's own signers have vouched for it") {
  const Ceremony site;
  const PrivateKey stranger = PrivateKey::generate();
  Envelope one = signed_root(site.first, {&site.a, &site.b, &stranger});
  CHECK_NOTHROW(accept(pinned(one).state, {one}));
  one.signatures.at(stranger.public_key().id()).bytes[3] ^= std::byte{1};
  CHECK_REFUSED(accept(pinned(one).state, {one}), Signature, "does not hold");
  Envelope two = signed_root(next_root(site.first), {&site.b, &site.c, &stranger});
  CHECK(version_of(accept(pinned(site.one).state, {site.one, two})) == 2);
  two.signatures.at(stranger.public_key().id()).bytes[3] ^= std::byte{1};
  CHECK_REFUSED(accept(pinned(site.one).state, {site.one, two}), Signature, "does not hold");
}

TEST_CASE("fingerprints are read as people copy them") {
  const Digest digest = sha256({});
  std::string spaced, upper = digest.hex();
  for (std::size_t i = 0; i < 64; i += 4) spaced += (i == 0 ? "" : " ") + digest.hex().substr(i, 4);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  CHECK(parse_fingerprint("sha256:" + digest.hex()) == digest);
  CHECK(parse_fingerprint(digest.hex() + "\n") == digest);
  CHECK(parse_fingerprint(spaced) == digest);
  CHECK(parse_fingerprint(upper) == digest);
  CHECK_REFUSED(parse_fingerprint("sha256:1234"), Usage, "1234");
  CHECK_REFUSED(parse_fingerprint(""), Usage, "fingerprint");
}
