// SPDX-License-Identifier: Apache-2.0
// The files of locked Debian packages: what is downloaded, and where it goes. In a generation they form a flat
// repository, `apt/`, that apt on the isolated machine can use as a source.
#pragma once

#include "packager/job/apt.hpp"
#include "packager/models/model_files.hpp"

namespace sealift::packager {

std::vector<Download> downloads_of(const LockedApt& apt);

// Throws Missing when the index is not in the cache; `lock` made it, so no server has it.
void require_index(const LockedApt& apt, const Cache& cache);

std::vector<PlacedFile> place_files(const LockedApt& apt, const Cache& cache);

}  // namespace sealift::packager
