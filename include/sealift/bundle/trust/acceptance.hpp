// SPDX-License-Identifier: Apache-2.0
// After signatures hold: may this site take in this bundle *now*? Withdrawn, older than what was accepted, another
// content under the same version. Time only ever warns, unless the root is strict: isolated clocks are often wrong.
#pragma once

#include <string>
#include <vector>

#include "sealift/bundle/core/time.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/trust/root_chain.hpp"

namespace sealift::bundle {

// What a site believes and what its operator allows for this run.
struct Trust {
  TrustState state;
  bool allow_downgrade = false;        // an older version may be taken in, down to the floors
  bool sandboxed_builds_only = false;  // a wheel that was built outside of a sandbox is refused
};

// Throws Revoked when `root` has withdrawn the bundle whose manifest has this digest.
void refuse_revoked(const Root& root, const Digest& identity, const std::string& where);

// Throws Rollback when the bundle is below a floor; Equivocation when another bundle was accepted under its name and
// version, whether or not newer ones were accepted since and a downgrade is allowed; Rollback when it is older than one
// that was accepted and no downgrade is allowed.
void refuse_rollback(const Trust& trust, const Root& root, const Manifest& manifest, const Digest& identity,
                     const std::string& where);

// Throws Conflict naming wheels that the packer built outside of a sandbox.
void refuse_unsandboxed_builds(const Manifest& manifest, const std::string& where);

// Warnings about the clock and an expired root; throws Revoked when the root has expired and is strict.
std::vector<std::string> judge_time(const TrustState& state, const Root& root, Time now, const std::string& where);

// The state of a site that has taken in this bundle.
TrustState remember(TrustState state, const Manifest& manifest, const Digest& identity);

}  // namespace sealift::bundle
