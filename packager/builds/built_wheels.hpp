// SPDX-License-Identifier: Apache-2.0
// Builds wheels in the cache for all packages of a job that come as source, and, for `create`, builds those again that
// the cache has lost. Failures are reported as one list, each with the end of its log and who needs the package.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "packager/builds/build_failures.hpp"
#include "packager/builds/source_build.hpp"
#include "packager/files/cache.hpp"
#include "packager/libraries/native_closure.hpp"
#include "packager/network/fetch.hpp"
#include "packager/resolve/pylock.hpp"
#include "packager/tables/startup_rules.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct BuiltWheels {
  std::vector<LockedWheel> wheels;
  std::vector<NativeNeed> needs;  // of the ELF files inside, because a tag such as linux_x86_64 names no glibc
};

// `startup_files` are the job's, for built wheels as for others. Throws Platform listing the packages that cannot be
// built or whose wheel does not fit `target`.
BuiltWheels build_sources(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                          const bundle::Target& target, const Cache& cache, bundle::Progress& progress,
                          const WhoNeeds& who_needs, const std::vector<StartupRule>& startup_files = {});

// Builds again those of these wheels that were built here and are missing or damaged in the cache; calls `tools` only
// when there is one. Returns the built ones. Throws Digest listing every wheel that came out with other bytes,
// Missing when a source or the Python is not there.
std::set<bundle::Digest> rebuild_missing(const std::vector<LockedWheel>& wheels,
                                         const std::function<BuildTools()>& tools, const Cache& cache,
                                         bundle::Progress& progress, const FetchOptions& options);

}  // namespace sealift::packager
