// SPDX-License-Identifier: Apache-2.0
// Which bundle this program was installed from, and what a recorded check belongs to.
// Read once by `run`: generation.json beside bin/, which sealift-install wrote.
// A check that was recorded under another bundle, level or world, or on other machines, is not taken over.
#pragma once

#include "verify/conduct/site.hpp"
#include "verify/verdict/verdict.hpp"

namespace sealift::verify {

/// The bundle of the generation at `prefix`; nothing where there is no generation.json. Throws std::invalid_argument on
/// one that cannot be read.
std::optional<BundleIdentity> bundle_of(const std::filesystem::path& prefix);

/// Kernel and NVIDIA driver of this host, as it runs now.
std::string system_of_host();

/// A text that is equal for runs whose checks can be taken over; `machines`: hosts, devices and systems of all ranks.
std::string identity_of(const Site& site, const std::optional<BundleIdentity>& bundle, const std::string& program,
                        const nlohmann::json& machines);

}  // namespace sealift::verify
