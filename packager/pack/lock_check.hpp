// SPDX-License-Identifier: Apache-2.0
// What `create` would refuse, asked while the lock is made, as far as it can be told without fetching the contents.
#pragma once

#include "packager/files/cache.hpp"
#include "packager/files/told_warnings.hpp"
#include "packager/lock/lock.hpp"
#include "packager/pack/ahead_check.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// What the profile's machine lacks, as far as names and sizes tell it; the rest is left to `create`. Throws as
// require_native does.
void check_profile(const Lock& lock, bundle::Progress& progress);

// Before anything is built: what directories and small members of the published wheels tell, and the profile by their
// names. A rule under [[owner]] that decides nothing yet may wait for a wheel that is not built. Throws as
// check_profile and check_contents.
void check_published(const Lock& lock, const Cache& cache, const HttpLogins& logins, SeenAhead& ahead);

// All that `create` checks if all wheels happen to be here already, and else what the directories and small members of
// the others tell; their servers are asked for these, unless `ahead` has seen them. Throws as plan_pack and
// check_native.
void check_contents(const Lock& lock, const Cache& cache, const HttpLogins& logins, SeenAhead& ahead,
                    ToldWarnings& told, bundle::Progress& progress);

}  // namespace sealift::packager
