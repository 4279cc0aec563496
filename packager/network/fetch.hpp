// SPDX-License-Identifier: Apache-2.0
// Downloads into the cache, several at a time, each hashed while it arrives. What has the wrong digest is never kept;
// what was cut is resumed, in this run or the next.
#pragma once

#include <vector>

#include "packager/network/parallel_requests.hpp"
#include "packager/network/transfer.hpp"

namespace sealift::packager {

// Afterwards the cache holds every download, with the right digest. Cached files are hashed first; a damaged one is
// removed and fetched again. Throws Space before anything is fetched; Network or Digest when everything else has
// arrived, naming every file that failed and every one that is not what was locked. Returns how many were fetched.
std::size_t fetch(const std::vector<Download>& downloads, const Cache& cache, bundle::Progress& progress,
                  const FetchOptions& options = {});

}  // namespace sealift::packager
