// SPDX-License-Identifier: Apache-2.0
// All packages of a job that come as source, made into wheels in the cache; and, for `create`, made again when the
// cache has lost one. What cannot be built is one list, each with the end of its log and who needs it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/files/fetch.hpp"
#include "packager/host/console.hpp"
#include "packager/native/native_closure.hpp"
#include "packager/python/pylock.hpp"
#include "packager/python/source_build.hpp"

namespace sealift::packager {

struct BuiltWheels {
  std::vector<LockedWheel> wheels;
  std::vector<NativeNeed> needs;  // of the ELF files inside: a tag such as linux_x86_64 tells nothing
};

using WhoNeeds = std::function<std::map<std::string, std::string>()>;  // asked only when something failed

// Throws Platform when something cannot be built, or what was built does not fit `target`.
BuiltWheels build_sources(const std::vector<SourcePackage>& sources, const BuildTools& tools,
                          const bundle::Target& target, const Cache& cache, Console& console,
                          const WhoNeeds& who_needs);

// Builds those of these wheels again that were built here and are not, or not intact, in the cache. `tools` is asked
// only when there is one. Throws Digest listing every wheel that came out with other bytes.
void rebuild_missing(const std::vector<LockedWheel>& wheels, const std::function<BuildTools()>& tools,
                     const Cache& cache, Console& console, const FetchOptions& options);

}  // namespace sealift::packager
