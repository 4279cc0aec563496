// SPDX-License-Identifier: Apache-2.0
// [apt] of a job -> what its lock says: every Debian package that the ones it names need, by digest. apt itself
// resolves, in a state of its own that knows only the suite's sources and no installed package, so what comes out is
// complete whatever the target has.
#pragma once

#include <filesystem>

#include "packager/job/apt.hpp"
#include "packager/files/cache.hpp"
#include "packager/host/console.hpp"

namespace sealift::packager {

struct AptOptions {
  std::filesystem::path config = "/etc/apt";  // where this machine's sources and keys are
};

// The index (a Packages file for a flat repository) goes into `cache`. `arch` is as uname says it. Throws Missing
// without apt, Usage for an unknown suite or unknown packages (all of them), Network when the sources do not answer.
LockedApt lock_apt(const JobApt& job, const std::string& arch, const Cache& cache, Console& console,
                   const AptOptions& options = {});

}  // namespace sealift::packager
