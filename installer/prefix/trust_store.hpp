// SPDX-License-Identifier: Apache-2.0
// PREFIX/trust: the root that an operator pinned, and what the site has accepted since. A pin is made by hand, from a
// fingerprint that came by another way than the medium; from there on only signed roots change who is trusted.
#pragma once

#include <vector>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/trust/root_chain.hpp"
#include "sealift/bundle/trust/trust_folder.hpp"

namespace sealift::installer {

// The roots in files, or in a bundle's seal, oldest first and held to every rule of a chain.
std::vector<bundle::SignedRoot> load_roots(const std::vector<std::filesystem::path>& files);

// The state after a command about trust, and whether it changed.
struct TrustChange {
  bundle::TrustState state;
  bool changed = false;
};

// Pins the root with this fingerprint, which must be in `roots`, and accepts those that lead on from it. Nothing
// happens when it is pinned already; another pinned root is a Conflict.
TrustChange pin_root(const Prefix& prefix, Disk& disk, const std::vector<std::filesystem::path>& roots,
                     const bundle::Digest& fingerprint);
// Accepts the roots that lead on from the newest accepted one: a rotation or a revocation without a bundle.
TrustChange update_root(const Prefix& prefix, Disk& disk, const std::vector<std::filesystem::path>& roots);

// Keeps `state`, durable before it is visible, one copy after the other. The caller holds the prefix's lock. False when
// it is what is kept already.
bool save_trust(const Prefix& prefix, Disk& disk, const bundle::TrustState& state);

}  // namespace sealift::installer
