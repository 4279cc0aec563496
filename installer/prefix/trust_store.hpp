// SPDX-License-Identifier: Apache-2.0
// PREFIX/trust: the trust root that an operator pinned, and what the site has accepted since. A pin is made by hand,
// from a fingerprint that did not come with the medium; after that only signed roots change who is trusted.
#pragma once

#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/trust/root_chain.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

// The trust roots in files, or in a bundle's seal, oldest first, as they were read: nobody has vouched for them.
std::vector<bundle::Envelope> load_roots(const std::vector<std::filesystem::path>& files);

// The trust state after a command, and whether the command changed it.
struct TrustChange {
  bundle::TrustState state;
  bool changed = false;
};

// Pins the root with this fingerprint, which must be in `roots`, and accepts its successors among them. Changes nothing
// when it is pinned already; throws Conflict when another root is pinned.
TrustChange pin_root(const Prefix& prefix, Disk& disk, const std::vector<std::filesystem::path>& roots,
                     const bundle::Digest& fingerprint);
// Accepts the successors of the newest accepted root: a rotation or a revocation without a bundle.
TrustChange update_root(const Prefix& prefix, Disk& disk, const std::vector<std::filesystem::path>& roots);

// Stores `state`, one copy after the other, each durable before it is visible. The caller holds the prefix lock.
// Returns false when it was stored already.
bool save_trust(const Prefix& prefix, Disk& disk, const bundle::TrustState& state);

}  // namespace sealift::installer
