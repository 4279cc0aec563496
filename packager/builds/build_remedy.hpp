// SPDX-License-Identifier: Apache-2.0
// What to do about a build that failed, read from the end of its log: builds say what they miss in a few well-known
// ways, and a remedy that does not fit the log sends people the wrong way.
#pragma once

#include <string>

namespace sealift::packager {

// For the build of `package` (normalized) whose log ends with `log`; empty when the log says nothing that is known.
std::string build_remedy(const std::string& package, const std::string& log);

}  // namespace sealift::packager
