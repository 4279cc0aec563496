// SPDX-License-Identifier: Apache-2.0
// [[image]] -> digests: skopeo fetches each image for the target's platform, we check all of it, and its blobs go into
// the cache. skopeo is a tool of the connected side, as uv is; `create` does not need it.
#pragma once

#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/tables/image.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// `arch` is the target's. Throws Missing without skopeo, Network when it cannot fetch, Digest when a source is not what
// its digest says, and what read_image_layout throws. Sorted by name and tag.
std::vector<LockedImage> lock_images(const std::vector<JobImage>& jobs, const std::string& arch, const Cache& cache,
                                     bundle::Progress& progress);

}  // namespace sealift::packager
