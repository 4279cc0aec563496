// SPDX-License-Identifier: Apache-2.0
// [rpm] of a job -> its lock: the named packages and all their dependencies, by digest. dnf's solver resolves in an
// empty root, so the result is complete whatever the target has installed; then each package is fetched and held to
// its index and to its repository's keys.
#pragma once

#include <string>

#include "packager/files/cache.hpp"
#include "packager/tables/rpm.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Puts the packages, an index of exactly these and the keys into `cache`. `arch` is as uname prints it. Throws Missing
// without dnf, createrepo_c or rpmkeys, Signature for packages that their repository's keys did not sign (naming all),
// Conflict for a package that is another than its index says, and what resolve_rpms and fetch throw.
LockedRpm lock_rpm(const JobRpm& job, const std::string& arch, const Cache& cache, bundle::Progress& progress);

}  // namespace sealift::packager
