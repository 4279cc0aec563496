// SPDX-License-Identifier: Apache-2.0
// A variable that the build of one package gets, as a job file gives it and a lock keeps it: one rule for both.
#pragma once

#include <string>
#include <string_view>

namespace sealift::packager {

// In a value: the site-packages of the build's environment.
inline constexpr std::string_view kBuildWord = "${BUILD}";

// Why a build cannot get this variable; null when it can.
const char* fault_of_build_variable(const std::string& name, std::string value);

}  // namespace sealift::packager
