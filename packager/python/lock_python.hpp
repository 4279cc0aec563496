// SPDX-License-Identifier: Apache-2.0
// The Python part of `lock`: resolve -> choose one wheel per package -> build the packages that have none.
#pragma once

#include "packager/builds/built_wheels.hpp"
#include "packager/python/ask_uv.hpp"

namespace sealift::packager {

struct LockedPython {
  std::vector<LockedWheel> wheels;    // sorted by file name
  std::vector<NativeNeed> needs;      // of built wheels; the tags of the others name theirs
  std::string pylock;                 // uv's answer, as evidence
  SourceFacts facts;                  // what uv was told of sources
  std::vector<std::string> warnings;  // uv's
};

// Built wheels go into the means' cache. Addresses come out as the job wrote them.
LockedPython lock_python(const Job& job, PythonMeans& means, bundle::Progress& progress);

}  // namespace sealift::packager
