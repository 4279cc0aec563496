// SPDX-License-Identifier: Apache-2.0
// From the root that a site pinned to the newest one: each next root is exactly one version later and is signed by the
// old root's threshold and by its own. Nothing of a chain is believed before the step that leads to it was checked.
// Modelled on The Update Framework, specification 1.0, section 5.3.
#pragma once

#include <string>
#include <vector>

#include "sealift/bundle/trust/trust_state.hpp"

namespace sealift::bundle {

struct SignedRoot {
  Root root;
  Envelope envelope;

  Digest fingerprint() const { return envelope.digest(); }
};

// Which root something was judged by, for records and reports.
struct RootName {
  std::uint64_t version = 0;
  Digest fingerprint;

  bool operator==(const RootName&) const = default;
};

// "fips=yes" when the root asks for it and this process has such a provider.
inline const char* crypto_properties(const Root& root) {
  return root.profile == Profile::Fips && detail::has_fips_provider() ? "fips=yes" : nullptr;
}

namespace detail {

// The signatures of an envelope, sorted by what they are to a role.
struct RoleCount {
  std::vector<Digest> counted;
  std::vector<Digest> unknown;    // of the role, but of a kind that cannot be checked here
  std::vector<Digest> withdrawn;  // revoked; no role names one of these
  std::vector<Digest> strangers;
};

inline RoleCount count_role(const Root& root, const Role& role, const std::map<Digest, Verdict>& verdicts) {
  RoleCount count;
  for (const auto& [id, verdict] : verdicts) {
    const bool in_role = std::binary_search(role.keys.begin(), role.keys.end(), id);
    (in_role && verdict == Verdict::Holds ? count.counted
     : in_role                            ? count.unknown
     : root.revoked_keys.contains(id)     ? count.withdrawn
                                          : count.strangers)
        .push_back(id);
  }
  return count;
}

// The kinds that the role asks for and that none of `keys` is of.
inline std::string missing_kinds(const Root& root, const Role& role, const std::vector<Digest>& keys) {
  std::string missing;
  for (const std::string& algorithm : role.algorithms)
    if (std::none_of(keys.begin(), keys.end(),
                     [&](const Digest& id) { return root.keys.at(id).algorithm == algorithm; }))
      missing += (missing.empty() ? "" : ", ") + algorithm;
  return missing;
}
inline bool is_met(const Root& root, const Role& role, const std::vector<Digest>& keys) {
  return keys.size() >= role.threshold && missing_kinds(root, role, keys).empty();
}

inline std::string listed(const std::vector<Digest>& keys) {
  std::string text;
  for (const Digest& id : keys) text += (text.empty() ? "sha256:" : ", sha256:") + id.hex();
  return text;
}

[[noreturn]] inline void refuse_role(const Root& root, const std::string& name, const RoleCount& count,
                                     const std::string& where) {
  const Role& role = root.roles.at(name);
  std::vector<Digest> hoped = count.counted;
  hoped.insert(hoped.end(), count.unknown.begin(), count.unknown.end());
  const std::string threshold = std::to_string(role.threshold), missing = missing_kinds(root, role, count.counted);
  std::string got = listed(count.counted);
  const auto add = [&got](const std::string& what, const std::string& keys) {
    if (!keys.empty()) got += (got.empty() ? "" : "; ") + what + keys;
  };
  add("of a kind that cannot be checked here: ", listed(count.unknown));
  add("keys without that role: ", listed(count.strangers));
  for (const Digest& id : count.withdrawn) {
    const Revocation& why = root.revoked_keys.at(id);
    add("revoked on " + why.date + " (" + SafePath::printable(why.reason) + "): ", listed({id}));
  }
  const auto [code, next] =
      is_met(root, role, hoped)
          ? std::pair(ErrorCode::CannotCheck, "use a newer sealift-install, whose crypto library has that kind")
      : !count.withdrawn.empty()
          ? std::pair(ErrorCode::Revoked, "ask the sender for one that is signed by keys that are still good")
          : std::pair(ErrorCode::Signature, "ask the sender for the missing signatures: sealift-pack sign");
  throw Error(code, {.what = std::to_string(count.counted.size()) + " of " + threshold + " " + name +
                             " signatures that this site's root asks for" +
                             (missing.empty() ? "" : "; none of kind " + missing),
                     .where = where,
                     .expected = threshold + " of " + listed(role.keys),
                     .got = got.empty() ? "no signature at all" : got,
                     .next = next});
}

}  // namespace detail

// The keys of the role `name` whose signatures of an envelope count; `verdicts` are those of its signatures. Throws
// when they do not meet the role: CannotCheck when kinds that we do not know would have, Revoked when withdrawn keys
// are among the signers, else Signature.
inline std::vector<Digest> require_role(const Root& root, const std::string& name,
                                        const std::map<Digest, Verdict>& verdicts, const std::string& where) {
  detail::RoleCount count = detail::count_role(root, root.roles.at(name), verdicts);
  if (!detail::is_met(root, root.roles.at(name), count.counted)) detail::refuse_role(root, name, count, where);
  return std::move(count.counted);
}

namespace detail {

inline std::string where_of_root(const Root& root, const std::string& where) {
  return where + ", root " + std::to_string(root.version);
}

// Revocations are for ever: what one root withdrew, the next must withdraw too.
inline void check_revocations_kept(const Revocations& before, const Revocations& after, const std::string& where) {
  for (const auto& [digest, revocation] : before)
    if (!after.contains(digest))
      throw Error(ErrorCode::Signature, {.what = "a root takes a revocation back",
                                         .where = where,
                                         .expected = "sha256:" + digest.hex() + ", revoked on " + revocation.date,
                                         .next = "its owner makes it again with: sealift-pack root create --previous"});
}

// `next` may follow `previous`: one version later, signed by the old threshold, revocations kept.
inline void check_step(const Root& previous, const SignedRoot& next, const std::string& where) {
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
inline void check_own_signatures(const SignedRoot& signed_root, const std::string& where) {
  const std::string place = where_of_root(signed_root.root, where);
  const auto verdicts = check_signatures(signed_root.envelope, place, crypto_properties(signed_root.root));
  require_role(signed_root.root, std::string(kRootRole), verdicts, place);
}

// Of the version that was accepted, but another: the owner's keys signed two, or it is somebody else's.
[[noreturn]] inline void refuse_other_root(const Root& accepted, std::string_view accepted_text,
                                           const SignedRoot& other, const std::string& where) {
  const Role& owners = accepted.roles.at(std::string(kRootRole));
  const bool theirs = std::any_of(owners.keys.begin(), owners.keys.end(), [&](const Digest& id) {
    return other.envelope.signatures.contains(id);  // they hold: read_root_chain has looked
  });
  throw Error(theirs ? ErrorCode::Equivocation : ErrorCode::Signature,
              {.what = theirs ? "another root of the version that this site has accepted"
                              : "the roots are not those of the owner whom this site trusts",
               .where = where_of_root(accepted, where),
               .expected = "sha256:" + sha256(as_bytes(accepted_text)).hex(),
               .got = "sha256:" + other.fingerprint().hex(),
               .next = theirs ? "ask the root's owner which one is theirs; do not use what came with it"
                              : "this bundle is for another site, or by somebody you have not chosen to trust"});
}

inline void take_in(TrustState& state, const Root& root, const std::string& text) {
  if (root.reset && !state.root.empty()) {
    state.seen.clear();
    state.time_floor = Time{};
  }
  state.root = text;
  state.time_floor = std::max(state.time_floor, *parse_time(root.created));
}

}  // namespace detail

// Reads roots, oldest first, and holds each to its own rules and signatures and each pair to the next; throws.
inline std::vector<SignedRoot> read_root_chain(const std::vector<Envelope>& envelopes, const std::string& where) {
  std::vector<SignedRoot> chain;
  for (const Envelope& envelope : envelopes) {
    if (envelope.payload_type != kRootPayloadType)
      throw Error(ErrorCode::Format, {.what = "this is no root",
                                      .where = where,
                                      .expected = std::string(kRootPayloadType),
                                      .got = SafePath::printable(envelope.payload_type)});
    SignedRoot signed_root{.root = parse_root(envelope.payload, where), .envelope = envelope};
    detail::check_own_signatures(signed_root, where);
    if (!chain.empty()) detail::check_step(chain.back().root, signed_root, where);
    chain.push_back(std::move(signed_root));
  }
  return chain;
}

// The state after everything in `chain` that leads on from it was accepted. A chain that ends before the accepted root
// changes nothing: it was made before a rotation. Throws when the pinned root is not in the chain, or another root
// stands where an accepted one should.
inline TrustState accept_roots(TrustState state, const std::vector<SignedRoot>& chain, const std::string& where) {
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
      there += (there.empty() ? "sha256:" : ", sha256:") + candidate.fingerprint().hex();
      ++next;
    }
    if (next == chain.size())
      throw Error(ErrorCode::Signature,
                  {.what = "the root that this site trusts is not among the bundle's roots",
                   .where = where,
                   .expected = "sha256:" + state.pinned->hex(),
                   .got = there,
                   .next = "compare the fingerprint with the one that the root's owner gave you by another way"});
    detail::take_in(state, chain[next].root, chain[next].envelope.payload);
    ++next;
  } else {
    const Root accepted = parse_root(state.root, "the accepted root");
    while (next < chain.size() && chain[next].root.version < accepted.version) ++next;
    if (next < chain.size() && chain[next].root.version == accepted.version) {
      if (chain[next].envelope.payload != state.root)
        detail::refuse_other_root(accepted, state.root, chain[next], where);
      ++next;
    } else if (next < chain.size()) {
      detail::check_step(accepted, chain[next], where);  // refuses a gap, too
    }
  }
  for (; next < chain.size(); ++next) detail::take_in(state, chain[next].root, chain[next].envelope.payload);
  return state;
}

}  // namespace sealift::bundle
