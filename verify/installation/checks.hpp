// SPDX-License-Identifier: Apache-2.0
// Is the installed generation still what was signed?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

std::vector<CheckKind> installation_checks();

}  // namespace sealift::verify
