// SPDX-License-Identifier: Apache-2.0
// `sealift-pack rehearse`: installs a finished bundle without a network, with the installer that travels with it, and
// throws the result away. A bundle that cannot be installed is noticed before it leaves, not behind the gap.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "packager/keys/role_status.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct RehearseOptions {
  std::filesystem::path bundle;
  bundle::Digest fingerprint;               // of the root by which the bundle is verified
  std::filesystem::path system;             // a system of the target's kind to install in; empty: this machine's own
  std::vector<std::filesystem::path> onto;  // what a delta builds on: installed first, in this order
  std::filesystem::path work_area;        // has room for all that is installed; empty: the folder that the bundle is in
  std::vector<std::string> waivers = {};  // PATH=REASON, for the installer's self-test of the bundle itself
};

// The bundle that is rehearsed, and not one that it builds on, did not install.
struct RehearsalFailure : bundle::Error {
  using bundle::Error::Error;
};

struct Rehearsal {
  std::string system;     // what it was installed in, for people
  std::string installed;  // the installer's first line
};

// Throws what bundle::verify throws; CannotCheck for a delta without the bundle that it builds on, and when this
// machine cannot start a process without a network; Usage for waivers that its installer refuses; and RehearsalFailure
// with the installer's own code when the bundle cannot be installed.
Rehearsal rehearse(const RehearseOptions& options, bundle::Progress& progress);

// What `create` ends with: a rehearsal, or the reason why there was none.
struct NewRehearsal {
  std::optional<Rehearsal> done = std::nullopt;
  std::string why_not = {};
};

// Rehearses the bundle that was just written into `folder`, and notes the result. A bundle that still needs signatures
// cannot be installed, and where there is no sandbox nothing is known: both are warned of, and neither is a pass.
// Throws what rehearse throws, but CannotCheck. A bundle that failed is renamed to NAME-VERSION.failed first, so that
// nobody hands it out by mistake.
NewRehearsal rehearse_new(const std::filesystem::path& folder, const std::vector<RoleStatus>& roles,
                          const std::filesystem::path& system, const std::vector<std::filesystem::path>& onto,
                          const std::vector<std::string>& waivers, bundle::Progress& progress);

// The same for what a bundle that carries its image alone was made of, while that lies in `folder`; it is not renamed.
NewRehearsal rehearse_draft(const std::filesystem::path& folder, const bundle::Digest& fingerprint,
                            const std::filesystem::path& system, const std::vector<std::string>& waivers,
                            bundle::Progress& progress);

}  // namespace sealift::packager
