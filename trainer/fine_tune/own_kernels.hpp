// SPDX-License-Identifier: Apache-2.0
// The trainer's own kernels in a fine-tuning job: started where the setting and the card let them, and what ran.
// Between the device, which is chosen before, and the result, which says it.
#pragma once

#include "trainer/ranks/place.hpp"

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// Loads and tries the kernels for a rank's card where they are `wanted`; a line on stderr where a card goes without.
/// Why there are none, or nothing.
std::string start_own_kernels(const Place& place, bool wanted);

/// For the result: `ran`, the pieces that ran by kernels of their own, and where there are none `why_not`.
nlohmann::ordered_json own_kernels_that_ran(const std::string& why_not);

}  // namespace sealift::trainer
