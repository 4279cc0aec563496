// SPDX-License-Identifier: Apache-2.0
// Where a job allows no builds, uv would rather take a pre-release that has a wheel than a release that has none: of
// deepspeed, whose releases are sources, a wheel of 2020. Such packages are sources of an index, like packages without
// a wheel.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/job/job.hpp"
#include "packager/resolve/source_facts.hpp"
#include "packager/resolve/uv_python.hpp"

namespace sealift::packager {

// "0.3.1.dev5", "2.0rc1"; not "1.0.post1" or "2.11.0+cu130".
bool is_prerelease(const std::string& version);

// Packages of uv's answer that are pre-releases, of which the job does not speak, and whose releases have no wheel:
// added to facts.of_indexes, and returned. Nothing for a lock that the job brings.
std::vector<std::string> released_as_sources(const std::string& pylock, const Job& job, const std::filesystem::path& uv,
                                             const UvPython& python, SourceFacts& facts);

}  // namespace sealift::packager
