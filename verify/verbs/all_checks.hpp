// SPDX-License-Identifier: Apache-2.0
// The checks of a run, in the order in which they are run.
// In `run`: listed before any rank starts, for the draft, and again once the ranks have met, to be conducted.
// One list, so that a report that was ended early names the same checks as any other.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/egress/watch.hpp"

#include <sealift/train.hpp>

namespace sealift::verify {

/// `golden`: names of the golden runs that the bundle carries; `packets`: as egress_checks takes it. `world` must
/// outlive what is returned.
std::vector<CheckKind> all_checks(train::Groups& world, at::Device device, const std::vector<std::string>& golden,
                                  std::function<std::vector<Attempt>()> packets = {});

/// Each of `only` is the beginning of a check's name, else it is misspelt: throws std::invalid_argument. On a rank
/// other than 0 names of golden runs may be rank 0's alone.
void need_checks(const std::vector<CheckKind>& kinds, const std::vector<std::string>& only, std::int64_t rank);

}  // namespace sealift::verify
