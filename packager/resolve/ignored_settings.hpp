// SPDX-License-Identifier: Apache-2.0
// Settings of pip and uv on the packing machine that would change which packages are taken, and do not here: the job
// alone decides, so that the same job means the same elsewhere. Who relies on them is told of each by name.
#pragma once

#include <string>
#include <vector>

#include "packager/job/job.hpp"

namespace sealift::packager {

// A sentence for each variable (UV_…, PIP_…), for each pip.conf and uv.toml that pip and uv would read here, and for
// the [tool.uv] of the job's project; with what to write into the job instead.
std::vector<std::string> ignored_settings(const Job& job);

}  // namespace sealift::packager
