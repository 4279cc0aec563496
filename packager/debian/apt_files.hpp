// SPDX-License-Identifier: Apache-2.0
// Locked Debian packages: how they get here, and where they go. In a generation they are a flat repository, `apt/`,
// that apt on the isolated machine can be pointed at.
#pragma once

#include "packager/job/apt.hpp"
#include "packager/models/model_files.hpp"

namespace sealift::packager {

std::vector<Download> downloads_of(const LockedApt& apt);

// Throws Missing when the index, which no server has, is not in the cache.
void require_index(const LockedApt& apt, const Cache& cache);

std::vector<PlacedFile> place_files(const LockedApt& apt, const Cache& cache);

}  // namespace sealift::packager
