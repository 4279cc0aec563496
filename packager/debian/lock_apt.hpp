// SPDX-License-Identifier: Apache-2.0
// [apt] of a job -> its lock: the named Debian packages and all their dependencies, by digest. apt itself resolves, in
// a state of its own with only the suite's sources and no installed package, so the result is complete whatever the
// target has installed.
#pragma once

#include <filesystem>

#include "packager/files/cache.hpp"
#include "packager/tables/apt.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct AptOptions {
  std::filesystem::path config = "/etc/apt";  // this machine's sources and keys
};

// Puts the index (a Packages file for a flat repository) into `cache`. `arch` is as uname prints it. Throws Missing
// without apt, Usage for an unknown suite or for unknown packages (naming all), Network when the sources do not answer,
// Conflict when the dependencies cannot be resolved.
LockedApt lock_apt(const JobApt& job, const std::string& arch, const Cache& cache, bundle::Progress& progress,
                   const AptOptions& options = {});

}  // namespace sealift::packager
