// SPDX-License-Identifier: Apache-2.0
// What a plan would refuse, asked while wheels are still on their servers: a closure that cannot be installed is found
// before gigabytes are fetched for it.
#pragma once

#include <map>
#include <vector>

#include "packager/content/content.hpp"
#include "packager/owners/installed_content.hpp"

namespace sealift::packager {

// What was seen of wheels on their servers, by the digest that the lock has for them, for the next look of the same
// run.
using SeenAhead = std::map<bundle::Digest, Installed>;

// The refusals of plan_pack of wheels and of their places, while wheels are still on their servers: of those, only
// directories and small members are asked for. False where one could not be looked into, and owners are left to
// plan_pack. No digest of a wheel is compared, so this refuses early and replaces nothing.
bool check_ahead(const Lock& lock, const std::vector<Content>& contents, const Cache& cache, const HttpLogins& logins,
                 SeenAhead& ahead);

}  // namespace sealift::packager
