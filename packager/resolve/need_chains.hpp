// SPDX-License-Identifier: Apache-2.0
// Why a package is there, for messages: the chain of packages that need it, up to the job. `resolve` has the direct
// needs from uv; a name deep in a closure of a hundred packages means little without its chain.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

// Package -> what needs it directly: packages, or something else, such as a file of the job.
using DirectNeeds = std::map<std::string, std::vector<std::string>>;

// Package -> "oss2, for ms-swift, for the job; also by app": one of the shortest chains, then the other direct needs.
std::map<std::string, std::string> need_chains(const DirectNeeds& needs);

}  // namespace sealift::packager
