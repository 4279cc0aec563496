// SPDX-License-Identifier: Apache-2.0
// The Python part of `lock`: resolve -> choose one wheel per package -> build the packages that have none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "packager/builds/built_wheels.hpp"
#include "packager/python/ask_uv.hpp"
#include "packager/resolve/project_source.hpp"

namespace sealift::packager {

struct LockedPython {
  std::vector<LockedWheel> wheels;        // sorted by file name
  std::vector<NativeNeed> needs;          // of built wheels; the tags of the others name theirs
  SourceFacts facts;                      // what uv was told of sources
  std::vector<std::string> warnings;      // of uv, and of releases that are much older than others
  std::vector<std::string> signed_pages;  // of indexes that sign the addresses of what they have
};

// Step by step, so that what uv chose can be kept and judged before anything is built:
//   do packages.ask(); while (!packages.build());
// Addresses come out as the job wrote them.
class PythonLock {
 public:
  // All must outlive this; built wheels go into the means' cache.
  PythonLock(const Job& job, PythonMeans& means, bundle::Progress& progress);

  // Until uv has an answer. Throws Platform when what is built keeps asking for other sources.
  void ask();
  const std::string& pylock() const { return pylock_; }
  const PythonChoice& choice() const { return answer_.choice; }

  // The sources of uv's answer; false when a wheel requires something else than uv was told, which is asked once more.
  bool build();

  LockedPython finish();

 private:
  std::map<std::string, std::string> needs() const;
  void warn_of_older(LockedPython& locked) const;

  const Job& job_;
  PythonMeans& means_;
  bundle::Progress& progress_;
  SourceFacts facts_;
  std::optional<ProjectSource> project_;
  UvAnswer answer_;
  std::string pylock_;
  std::vector<std::string> signed_pages_;
  // Wheels by what they were built from.
  std::map<std::string, std::pair<LockedWheel, NativeNeed>> built_;
  int rounds_ = 0;
};

}  // namespace sealift::packager
