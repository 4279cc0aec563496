// SPDX-License-Identifier: Apache-2.0
// What a source's wheel will require, for uv, which runs no code of packages: the source's backend says it, in the
// sandbox, in seconds and before anything is compiled. Its answer is kept by the source's digest.
#pragma once

#include "packager/builds/built_wheels.hpp"
#include "packager/resolve/source_facts.hpp"

namespace sealift::packager {

// Of each source, in order. Where the backend cannot say it without a wheel, the wheel is built, and build_sources
// takes it from the cache later. Throws as build_sources, Conflict for the metadata of another package.
std::vector<SourceMetadata> read_metadata(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                                          const bundle::Target& target, const Cache& cache, bundle::Progress& progress,
                                          const WhoNeeds& who_needs, const std::vector<StartupRule>& startup_files);

// For a wheel that was built here.
SourceMetadata metadata_of_built(const LockedWheel& wheel, const Cache& cache,
                                 const std::vector<StartupRule>& startup_files);

}  // namespace sealift::packager
