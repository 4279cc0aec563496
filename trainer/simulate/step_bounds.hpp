// SPDX-License-Identifier: Apache-2.0
// What no step has: shapes and rates that `simulate` refuses, by name, value and expectation.
// Asked once before a step is played; `needed` where a rate is used.
// A rate of 0 is refused only by what divides by it, since most steps need few of them.
#pragma once

#include "trainer/simulate/step.hpp"

namespace sealift::trainer {

/// Throws std::invalid_argument naming the first value that is out of bounds.
void check_step(const StepShape& shape, const Rates& rates);

/// A rate that this step needs; throws std::invalid_argument unless it is finite and above 0.
double needed(double rate, const char* name);

}  // namespace sealift::trainer
