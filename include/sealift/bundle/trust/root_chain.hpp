// SPDX-License-Identifier: Apache-2.0
// From the root that a site pinned to the newest one: each next root is exactly one version later and is signed by the
// old root's threshold and by its own. Nothing of a chain is believed before the step that leads to it was checked.
// Modelled on The Update Framework, specification 1.0, section 5.3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sealift/bundle/trust/role_signatures.hpp"
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

// Throws Signature unless `next` is one version later than `previous` and takes no revocation back; its signatures are
// not looked at, because who is about to sign it asks before there are any.
void require_succession(const Root& previous, const Root& next, const std::string& where);

// The most signatures that a chain read as a whole may carry: some seconds of work. A chain of kMaxRootChain roots has
// room for four owners' signatures before and after each step.
inline constexpr std::size_t kMaxChainSignatures = 8 * kMaxRootChain;

// Reads roots, oldest first, and holds each to its own rules and signatures and each pair to the next; throws. With
// more than kMaxChainSignatures it throws CannotCheck before it looks at one: nobody has vouched for the chain yet.
std::vector<SignedRoot> read_root_chain(const std::vector<Envelope>& envelopes, const std::string& where);

// The state after everything in `envelopes` that leads on from it was accepted. A chain that ends before the accepted
// root changes nothing: it was made before a rotation. Throws when the pinned root is not in the chain, or another root
// stands where an accepted one should. Nobody has vouched for the chain yet: links before the accepted root are not
// looked at; each later one is checked by the root before it first, and parsed only then. Whatever a stranger put into
// `envelopes`, it costs at most the checks of the signatures that stand under the site's own roots in it, and one more.
TrustState follow_roots(TrustState state, const std::vector<Envelope>& envelopes, const std::string& where);

}  // namespace sealift::bundle
