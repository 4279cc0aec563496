// SPDX-License-Identifier: Apache-2.0
// A job's pyproject whose dependencies only its build tells: Poetry's own table, setup.cfg, or `dynamic`. uv would run
// the build for that; here it is a source like others, built in the sandbox and read, and carried only if asked for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "packager/job/job.hpp"

namespace sealift::packager {

struct ProjectSource {
  std::string name;  // normalized
  std::filesystem::path folder;
  bool carried = false;  // the job's requirements name the folder, too
};

// Nothing where the job has no pyproject, or uv can read it as it stands. Throws Usage when no file tells its name.
std::optional<ProjectSource> project_to_build(const Job& job);

}  // namespace sealift::packager
