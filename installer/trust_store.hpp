// SPDX-License-Identifier: Apache-2.0
// The key fingerprints that a site pinned in PREFIX/trust, one file each, named by the fingerprint.
// A pin is made by hand, from a number that came by another way than the medium; nothing here learns keys by itself.
#pragma once

#include "installer/disk.hpp"
#include "installer/prefix.hpp"
#include "sealift/bundle/trust.hpp"

namespace sealift::installer {

// Empty when nothing is pinned; throws Format when a pin says something else than its name.
bundle::TrustedKeys pinned_keys(const Prefix& prefix);

// False when it was pinned already.
bool pin_key(const Prefix& prefix, Disk& disk, const bundle::Digest& fingerprint);

}  // namespace sealift::installer
