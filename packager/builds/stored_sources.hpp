// SPDX-License-Identifier: Apache-2.0
// Sources as one file each in the cache, and the orders to build them. Builds and questions about what a source
// requires begin here alike, so that both see the same bytes with the same tools.
#pragma once

#include <filesystem>
#include <vector>

#include "packager/builds/build_order.hpp"
#include "packager/files/cache.hpp"
#include "packager/resolve/pylock.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// Puts every source into the cache; returns the digests in the order of `sources`. `scratch` is on the cache's file
// system, and keeps the clones of repositories.
std::vector<bundle::Digest> store_sources(const std::vector<SourcePackage>& sources, const GitLogins& logins,
                                          const Cache& cache, const std::filesystem::path& scratch,
                                          bundle::Progress& progress);

// The history of a repository whose version nobody has said; else empty.
std::filesystem::path history_of(const SourcePackage& source, const std::filesystem::path& scratch);

// The order for a stored source, without a history.
BuildOrder order_of(const SourcePackage& source, const bundle::Digest& archive, const BuildTools& tools,
                    const Cache& cache);

// The order's version, told by the backend with the history where nobody has said it; then it is built from what can
// be repeated.
void learn_version(BuildOrder& order, const std::filesystem::path& history, const BuildTools& tools,
                   const std::filesystem::path& place);

}  // namespace sealift::packager
