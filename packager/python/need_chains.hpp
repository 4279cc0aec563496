// SPDX-License-Identifier: Apache-2.0
// Why a package is there, for messages: who asked for it, and who asked for them, up to the job. `resolve` has the
// direct answers from uv; a name deep in a closure of a hundred packages means little without the way to it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

// Package -> who needs it directly: packages, or what is none, such as a file of the job.
using DirectNeeds = std::map<std::string, std::vector<std::string>>;

// Package -> "oss2, for ms-swift, for the job; also by app": one of the shortest ways, then the other direct ones.
std::map<std::string, std::string> need_chains(const DirectNeeds& needs);

}  // namespace sealift::packager
