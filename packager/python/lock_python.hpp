// SPDX-License-Identifier: Apache-2.0
// The Python half of `lock`: resolve -> choose one wheel per package -> build those that have none.
#pragma once

#include "packager/python/built_wheels.hpp"
#include "packager/python/interpreter.hpp"
#include "packager/python/resolve.hpp"

namespace sealift::packager {

struct LockedPython {
  std::vector<LockedWheel> wheels;  // sorted by file name
  std::vector<NativeNeed> needs;    // of what was built; the tags of the others say theirs
  std::string pylock;               // uv's answer, as evidence
};

// `folder` is where the lock will lie; built wheels go to `cache`.
LockedPython lock_python(const Job& job, const std::filesystem::path& uv, const Interpreter& interpreter,
                         const std::filesystem::path& folder, const Cache& cache, Console& console);

}  // namespace sealift::packager
