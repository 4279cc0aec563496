// SPDX-License-Identifier: Apache-2.0
// Collectives: are they right, and how fast, over each axis, between each pair of nodes?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

std::vector<CheckKind> communication_checks(train::Groups& world);

}  // namespace sealift::verify
