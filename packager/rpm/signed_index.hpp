// SPDX-License-Identifier: Apache-2.0
// What dnf and zypper want of a repository whose index they are to trust (repo_gpgcheck): the signature of repomd.xml,
// whose digests reach everything else. The index is the lock's; it is signed as it is, and its key travels along.
#pragma once

#include <string>
#include <vector>

#include "packager/content/content.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// rpm/repodata/repomd.xml.asc and repomd.xml.key, signed by the secret key with this fingerprint. Throws Usage when the
// lock has no rpm packages, Digest when `cache` holds another index than was locked, and what GpgKey throws.
std::vector<Content> signed_index(const Lock& lock, const std::string& fingerprint, const Cache& cache,
                                  bundle::Progress& progress);

}  // namespace sealift::packager
