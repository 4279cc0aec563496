// SPDX-License-Identifier: Apache-2.0
// A locked kernel as contents of a bundle, in the layout of the loader's cache that it opens without a network, and the
// variables that lead it there. An ordinary cache is not one: a loader would miss the ref of a version, and find the
// list of the whole repository (trees/), which is not there.
#pragma once

#include <vector>

#include "packager/content/content.hpp"
#include "packager/tables/kernel.hpp"
#include "sealift/bundle/manifest/variables.hpp"

namespace sealift::packager {

// snapshots/COMMIT/build/VARIANT/…, and refs/REVISION that names the commit. Each file is one of a program, so that the
// native check looks at it.
std::vector<Content> contents_of(const LockedKernel& kernel);

// KERNELS_CACHE, and LOCAL_KERNELS for loaders that look nowhere else when they are offline.
bundle::Variables kernel_variables(const std::vector<LockedKernel>& kernels);

}  // namespace sealift::packager
