// SPDX-License-Identifier: Apache-2.0
// Is each machine what its kind should be, and like its siblings?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

std::vector<CheckKind> machine_checks();

}  // namespace sealift::verify
