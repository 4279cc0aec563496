// SPDX-License-Identifier: Apache-2.0
// Which of the chosen packages are much older than what their indexes have for the target. Requirements of others hold
// a package back without a word; uv tells what it chose, not what it passed over, so it is asked for the newest alone.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "packager/job/job.hpp"
#include "packager/resolve/uv_python.hpp"

namespace sealift::packager {

struct OlderRelease {
  std::string name;  // normalized
  std::string version, day;
  std::string newest, newest_day;  // of the newest that fits the target

  // "x 1.0 is of 2024-01-31; the newest release that fits, 3.0, is of 2026-01-31".
  std::string text() const;
};

// Releases that are older by more than a year, in the order of `pylock`; none where indexes do not say when a release
// came out. A package whose newest release uv does not find is left out.
std::vector<OlderRelease> older_releases(std::string_view pylock, const Job& job, const std::filesystem::path& uv,
                                         const UvPython& python);

}  // namespace sealift::packager
