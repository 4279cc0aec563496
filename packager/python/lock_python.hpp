// SPDX-License-Identifier: Apache-2.0
// The Python part of `lock`: resolve -> choose one wheel per package -> build the packages that have none.
#pragma once

#include "packager/builds/built_wheels.hpp"
#include "packager/interpreter/interpreter.hpp"
#include "packager/resolve/resolve.hpp"

namespace sealift::packager {

struct LockedPython {
  std::vector<LockedWheel> wheels;  // sorted by file name
  std::vector<NativeNeed> needs;    // of built wheels; the tags of the others name theirs
  std::string pylock;               // uv's answer, as evidence
  SourceFacts facts;                // what uv was told of sources
};

// `folder` is where the lock will be written; built wheels go into `cache`.
LockedPython lock_python(const Job& job, const std::filesystem::path& uv, const Interpreter& interpreter,
                         const std::filesystem::path& folder, const Cache& cache, bundle::Progress& progress,
                         Isolation isolation);

}  // namespace sealift::packager
