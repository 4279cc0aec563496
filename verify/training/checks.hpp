// SPDX-License-Identifier: Apache-2.0
// Does training here give what it gave outside: the methods agree, jobs resume, the golden run is met, Python agrees?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// `golden`: names of the golden runs that the bundle carries, the same on every rank.
std::vector<CheckKind> training_checks(const std::vector<std::string>& golden);

}  // namespace sealift::verify
