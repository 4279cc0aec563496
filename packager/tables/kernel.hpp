// SPDX-License-Identifier: Apache-2.0
// Compiled kernels of a hub as values: what a job's [[kernel]] asks for, and what a lock pins. A kernel is one variant
// of a repository, the choice of the locked loader (the package `kernels`) on the target.
#pragma once

#include <string>
#include <vector>

#include "packager/tables/model.hpp"

namespace sealift::packager {

struct LockedKernel {
  ModelSpec spec;                  // of Hub::HfHub; spec.kernel says which kind of repository the loader asks for
  std::string commit;              // 40 hexadecimal digits
  std::string variant;             // "torch211-cxx11-cu128-x86_64-linux"
  bool named_by_variable = false;  // the loader finds it by LOCAL_KERNELS alone, not in its cache
  std::vector<LockedFile> files;   // build/VARIANT/…, as in the repository; sorted by path

  std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const LockedFile& file : files) sum += file.size;
    return sum;
  }
  bool operator==(const LockedKernel&) const = default;
};

}  // namespace sealift::packager
