// SPDX-License-Identifier: Apache-2.0
// Walks a chain step by step; see root_chain.hpp.
#include "sealift/bundle/trust/root_chain.hpp"

#include <algorithm>
#include <utility>

#include "bundle/core/json.hpp"
#include "sealift/bundle/core/human_text.hpp"

namespace sealift::bundle {

namespace {

std::string where_of_root(const Root& root, const std::string& where) {
  return where + ", root " + std::to_string(root.version);
}

// Revocations are for ever: what one root withdrew, the next must withdraw too.
void check_revocations_kept(const Revocations& before, const Revocations& after, const std::string& where) {
  for (const auto& [digest, revocation] : before)
    if (!after.contains(digest))
      throw Error(ErrorCode::Signature, {.what = "a root takes a revocation back",
                                         .where = where,
                                         .expected = fingerprint_text(digest) + ", revoked on " + revocation.date,
                                         .next = "its owner makes it again with: sealift-pack root create --previous"});
}

// `next` may follow `previous`, and is signed by the old threshold.
void check_step(const Root& previous, const SignedRoot& next, const std::string& where) {
  const std::string place = where_of_root(next.root, where);
  require_succession(previous, next.root, where);
  const auto verdicts = check_signatures(next.envelope, place, crypto_properties(previous));
  require_role(previous, std::string(kRootRole), verdicts,
               place + ", which root " + std::to_string(previous.version) + " must have signed");
}

// It must be signed by its own threshold too, so nobody can name keys that nobody holds.
void check_own_signatures(const SignedRoot& signed_root, const std::string& where) {
  const std::string place = where_of_root(signed_root.root, where);
  const auto verdicts = check_signatures(signed_root.envelope, place, crypto_properties(signed_root.root));
  require_role(signed_root.root, std::string(kRootRole), verdicts, place);
}

// Of the version that was accepted, but another: the owner's keys signed two, or it is somebody else's.
[[noreturn]] void refuse_other_root(const Root& accepted, std::string_view accepted_text, const Envelope& other,
                                    const std::string& where) {
  const Role& owners = accepted.roles.at(std::string(kRootRole));
  const bool theirs = std::any_of(owners.keys.begin(), owners.keys.end(), [&](const Digest& id) {
    return other.signatures.contains(id);  // they hold: the caller has looked
  });
  throw Error(theirs ? ErrorCode::Equivocation : ErrorCode::Signature,
              {.what = theirs ? "another root of the version that this site has accepted"
                              : "the roots are not those of the owner whom this site trusts",
               .where = where_of_root(accepted, where),
               .expected = fingerprint_text(sha256(as_bytes(accepted_text))),
               .got = fingerprint_text(other.digest()),
               .next = theirs ? "ask the root's owner which one is theirs; do not use what came with it"
                              : "this bundle is for another site, or by somebody you have not chosen to trust"});
}

SignedRoot parse_signed_root(const Envelope& envelope, const std::string& where) {
  require_payload_type(envelope, kRootPayloadType, ErrorCode::Format, "this is no root", where);
  return {.root = parse_root(envelope.payload, where), .envelope = envelope};
}

// The version that an unsigned root claims. No key in it is parsed.
std::uint64_t claimed_version(const Envelope& envelope, const std::string& where) {
  const Json json = parse_json(envelope.payload, where);
  const auto version = json.is_object() ? json.find("version") : json.end();
  if (version == json.end() || !version->is_number_unsigned()) refuse_json(where, "a root does not say its version");
  return version->get<std::uint64_t>();
}

// The root that a site pinned: its text is vouched for by the pin, its signatures are checked here.
SignedRoot read_pinned_root(const Envelope& envelope, const std::string& where) {
  SignedRoot pinned = parse_signed_root(envelope, where);
  const std::string place = where_of_root(pinned.root, where), role(kRootRole);
  check_role(pinned.root, role, envelope, place);
  check_other_signatures(pinned.root, {role}, envelope, place);
  return pinned;
}

// The root after `previous`; nothing of it is parsed before the keys of `previous` have signed it.
SignedRoot read_next_root(const Root& previous, const Envelope& envelope, const std::string& where) {
  const std::string role(kRootRole), version = std::to_string(previous.version);
  check_role(previous, role, envelope, where + ", the root that root " + version + " must have signed");
  SignedRoot next = parse_signed_root(envelope, where);
  const std::string place = where_of_root(next.root, where);
  require_succession(previous, next.root, where);
  check_role(next.root, role, envelope, place);
  check_other_signatures(next.root, {role}, envelope, place);
  return next;
}

// Where to go on in `envelopes` from the root that the site has accepted; their end when nothing is new.
std::size_t first_new_root(const std::string& accepted_text, const Root& accepted,
                           const std::vector<Envelope>& envelopes, const std::string& where) {
  for (std::size_t i = 0; i < envelopes.size(); ++i)
    if (envelopes[i].payload == accepted_text) return i + 1;
  if (envelopes.empty()) return 0;
  const std::uint64_t first = claimed_version(envelopes.front(), where);
  if (first > accepted.version) return 0;  // a gap is found there
  if (accepted.version - first >= envelopes.size()) return envelopes.size();
  const Envelope& other = envelopes[static_cast<std::size_t>(accepted.version - first)];
  const Role& owners = accepted.roles.at(std::string(kRootRole));
  check_signatures(other, where, crypto_properties(accepted),
                   [&](const Digest& id) { return std::binary_search(owners.keys.begin(), owners.keys.end(), id); });
  refuse_other_root(accepted, accepted_text, other, where);
}

void take_in(TrustState& state, const Root& root, const std::string& text) {
  if (root.reset && !state.root.empty()) {
    state.seen.clear();
    state.time_floor = Time{};
  }
  state.root = text;
  state.time_floor = std::max(state.time_floor, *parse_time(root.created));
}

void require_few_signatures(const std::vector<Envelope>& envelopes, const std::string& where) {
  std::size_t signatures = 0;
  for (const Envelope& envelope : envelopes) signatures += envelope.signatures.size();
  if (signatures <= kMaxChainSignatures) return;
  throw Error(
      ErrorCode::CannotCheck,
      {.what = "the chain of roots carries more signatures than are checked for an unknown signer",
       .where = where,
       .expected = "at most " + std::to_string(kMaxChainSignatures),
       .got = std::to_string(signatures),
       .next = "ask the chain's owner; sealift-install follows a pinned root without checking those before it"});
}

[[noreturn]] void refuse_no_pin(const std::string& where) {
  throw Error(ErrorCode::Signature,
              {.what = "no root is pinned, so nobody is trusted",
               .where = where,
               .next = "compare the root's fingerprint with what its owner told you, then: sealift-install trust add"});
}

// The index of the pinned root among `fingerprints`.
std::size_t find_pinned(const Digest& pinned, const std::vector<Digest>& fingerprints, const std::string& where) {
  std::string there;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    if (fingerprints[i] == pinned) return i;
    if (i < 8) there += (there.empty() ? "" : ", ") + fingerprint_text(fingerprints[i]);
  }
  throw Error(ErrorCode::Signature,
              {.what = "the root that this site trusts is not among the bundle's roots",
               .where = where,
               .expected = fingerprint_text(pinned),
               .got = there + (fingerprints.size() > 8 ? ", ..." : ""),
               .next = "compare the fingerprint with what the root's owner gave you by another way"});
}

std::vector<Digest> fingerprints_of(const std::vector<Envelope>& envelopes) {
  std::vector<Digest> fingerprints;
  for (const Envelope& envelope : envelopes) fingerprints.push_back(envelope.digest());
  return fingerprints;
}

}  // namespace

void require_succession(const Root& previous, const Root& next, const std::string& where) {
  const std::string place = where_of_root(next, where);
  if (next.version != previous.version + 1)
    throw Error(ErrorCode::Signature, {.what = "the chain of roots has a gap",
                                       .where = place,
                                       .expected = "root " + std::to_string(previous.version + 1),
                                       .got = "root " + std::to_string(next.version),
                                       .next = "get the roots between: sealift-install trust update ROOT..."});
  check_revocations_kept(previous.revoked_keys, next.revoked_keys, place);
  check_revocations_kept(previous.revoked_bundles, next.revoked_bundles, place);
}

std::vector<SignedRoot> read_root_chain(const std::vector<Envelope>& envelopes, const std::string& where) {
  require_few_signatures(envelopes, where);
  std::vector<SignedRoot> chain;
  for (const Envelope& envelope : envelopes) {
    SignedRoot signed_root = parse_signed_root(envelope, where);
    check_own_signatures(signed_root, where);
    if (!chain.empty()) check_step(chain.back().root, signed_root, where);
    chain.push_back(std::move(signed_root));
  }
  return chain;
}

TrustState follow_roots(TrustState state, const std::vector<Envelope>& envelopes, const std::string& where) {
  if (!state.pinned) refuse_no_pin(where);
  std::size_t next = 0;
  Root root;
  if (state.root.empty()) {
    const std::size_t first = find_pinned(*state.pinned, fingerprints_of(envelopes), where);
    root = read_pinned_root(envelopes[first], where).root;
    take_in(state, root, envelopes[first].payload);
    next = first + 1;
  } else {
    root = parse_root(state.root, "the accepted root");
    next = first_new_root(state.root, root, envelopes, where);
  }
  for (; next < envelopes.size(); ++next) {
    root = read_next_root(root, envelopes[next], where).root;
    take_in(state, root, envelopes[next].payload);
  }
  return state;
}

}  // namespace sealift::bundle
