// SPDX-License-Identifier: Apache-2.0
// Who is wrong when elements came wrong.
// Used by the judges of right collectives and of pairs.
// Wrong data has a sender and a receiver; who of them it was follows from who else has to do with wrong data.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/culprits.hpp"

namespace sealift::verify {

/// Finds who must be wrong for all "faults" of the measurements (see judge_right) to be.
Culprits blame_for_wrong_elements(const std::vector<Measured>& all);

}  // namespace sealift::verify
