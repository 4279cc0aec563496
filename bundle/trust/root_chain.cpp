// SPDX-License-Identifier: Apache-2.0
// Walks a chain step by step; see root_chain.hpp.
#include "sealift/bundle/trust/root_chain.hpp"

#include <algorithm>
#include <utility>

#include "sealift/bundle/core/human_text.hpp"
#include "sealift/bundle/core/safe_path.hpp"

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

// `next` may follow `previous`: one version later, signed by the old threshold, revocations kept.
void check_step(const Root& previous, const SignedRoot& next, const std::string& where) {
  const std::string place = where_of_root(next.root, where);
  if (next.root.version != previous.version + 1)
    throw Error(ErrorCode::Signature, {.what = "the chain of roots has a gap",
                                       .where = place,
                                       .expected = "root " + std::to_string(previous.version + 1),
                                       .got = "root " + std::to_string(next.root.version),
                                       .next = "get the roots between: sealift-install trust update ROOT..."});
  const auto verdicts = check_signatures(next.envelope, place, crypto_properties(previous));
  require_role(previous, std::string(kRootRole), verdicts,
               place + ", which root " + std::to_string(previous.version) + " must have signed");
  check_revocations_kept(previous.revoked_keys, next.root.revoked_keys, place);
  check_revocations_kept(previous.revoked_bundles, next.root.revoked_bundles, place);
}

// It must be signed by its own threshold too, so nobody can name keys that nobody holds.
void check_own_signatures(const SignedRoot& signed_root, const std::string& where) {
  const std::string place = where_of_root(signed_root.root, where);
  const auto verdicts = check_signatures(signed_root.envelope, place, crypto_properties(signed_root.root));
  require_role(signed_root.root, std::string(kRootRole), verdicts, place);
}

// Of the version that was accepted, but another: the owner's keys signed two, or it is somebody else's.
[[noreturn]] void refuse_other_root(const Root& accepted, std::string_view accepted_text, const SignedRoot& other,
                                    const std::string& where) {
  const Role& owners = accepted.roles.at(std::string(kRootRole));
  const bool theirs = std::any_of(owners.keys.begin(), owners.keys.end(), [&](const Digest& id) {
    return other.envelope.signatures.contains(id);  // they hold: read_root_chain has looked
  });
  throw Error(theirs ? ErrorCode::Equivocation : ErrorCode::Signature,
              {.what = theirs ? "another root of the version that this site has accepted"
                              : "the roots are not those of the owner whom this site trusts",
               .where = where_of_root(accepted, where),
               .expected = fingerprint_text(sha256(as_bytes(accepted_text))),
               .got = fingerprint_text(other.fingerprint()),
               .next = theirs ? "ask the root's owner which one is theirs; do not use what came with it"
                              : "this bundle is for another site, or by somebody you have not chosen to trust"});
}

void take_in(TrustState& state, const Root& root, const std::string& text) {
  if (root.reset && !state.root.empty()) {
    state.seen.clear();
    state.time_floor = Time{};
  }
  state.root = text;
  state.time_floor = std::max(state.time_floor, *parse_time(root.created));
}

}  // namespace

std::vector<SignedRoot> read_root_chain(const std::vector<Envelope>& envelopes, const std::string& where) {
  std::vector<SignedRoot> chain;
  for (const Envelope& envelope : envelopes) {
    if (envelope.payload_type != kRootPayloadType)
      throw Error(ErrorCode::Format, {.what = "this is no root",
                                      .where = where,
                                      .expected = std::string(kRootPayloadType),
                                      .got = SafePath::printable(envelope.payload_type)});
    SignedRoot signed_root{.root = parse_root(envelope.payload, where), .envelope = envelope};
    check_own_signatures(signed_root, where);
    if (!chain.empty()) check_step(chain.back().root, signed_root, where);
    chain.push_back(std::move(signed_root));
  }
  return chain;
}

TrustState accept_roots(TrustState state, const std::vector<SignedRoot>& chain, const std::string& where) {
  if (!state.pinned)
    throw Error(
        ErrorCode::Signature,
        {.what = "no root is pinned, so nobody is trusted",
         .where = where,
         .next = "compare the root's fingerprint with what its owner told you, then: sealift-install trust add"});
  std::size_t next = 0;
  if (state.root.empty()) {
    std::string there;
    for (const SignedRoot& candidate : chain) {
      if (candidate.fingerprint() == *state.pinned) break;
      there += (there.empty() ? "" : ", ") + fingerprint_text(candidate.fingerprint());
      ++next;
    }
    if (next == chain.size())
      throw Error(ErrorCode::Signature,
                  {.what = "the root that this site trusts is not among the bundle's roots",
                   .where = where,
                   .expected = fingerprint_text(*state.pinned),
                   .got = there,
                   .next = "compare the fingerprint with the one that the root's owner gave you by another way"});
    take_in(state, chain[next].root, chain[next].envelope.payload);
    ++next;
  } else {
    const Root accepted = parse_root(state.root, "the accepted root");
    while (next < chain.size() && chain[next].root.version < accepted.version) ++next;
    if (next < chain.size() && chain[next].root.version == accepted.version) {
      if (chain[next].envelope.payload != state.root) refuse_other_root(accepted, state.root, chain[next], where);
      ++next;
    } else if (next < chain.size()) {
      check_step(accepted, chain[next], where);  // refuses a gap, too
    }
  }
  for (; next < chain.size(); ++next) take_in(state, chain[next].root, chain[next].envelope.payload);
  return state;
}

}  // namespace sealift::bundle
