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

// Reads roots, oldest first, and holds each to its own rules and signatures and each pair to the next; throws.
std::vector<SignedRoot> read_root_chain(const std::vector<Envelope>& envelopes, const std::string& where);

// The state after everything in `chain` that leads on from it was accepted. A chain that ends before the accepted root
// changes nothing: it was made before a rotation. Throws when the pinned root is not in the chain, or another root
// stands where an accepted one should.
TrustState accept_roots(TrustState state, const std::vector<SignedRoot>& chain, const std::string& where);

}  // namespace sealift::bundle
