// SPDX-License-Identifier: Apache-2.0
// Does anything try to leave?
// A part of the list that `run` conducts.
// See check_kind.hpp for the two halves of a check.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/egress/watch.hpp"

namespace sealift::verify {

/// `packets`: on rank 0 of a run in a counted network, what its packets tried; else nothing.
std::vector<CheckKind> egress_checks(std::function<std::vector<Attempt>()> packets = {});

}  // namespace sealift::verify
