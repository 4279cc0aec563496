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
// system.
std::vector<bundle::Digest> store_sources(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                                          const Cache& cache, const std::filesystem::path& scratch,
                                          bundle::Progress& progress);

// The order for a stored source.
BuildOrder order_of(const SourcePackage& source, const bundle::Digest& archive, const BuildTools& tools,
                    const Cache& cache);

}  // namespace sealift::packager
