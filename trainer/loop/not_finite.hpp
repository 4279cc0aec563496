// SPDX-License-Identifier: Apache-2.0
// Whose loss or gradient was not finite, when a step came to one: the rank, the unit, the rows.
// After the backward of such a step and before its optimizer, which would spread it over every parameter.
// Ranks have summed their gradients by then, which hides whose it was. The parameters are still those of the step, so
// it is done once more, with the same random numbers, and each rank looks at its own values before they are summed: a
// step that is finite pays nothing for it.
#pragma once

#include "trainer/loop/job.hpp"

namespace sealift::trainer {

/// What a step draws from, as it was before the step.
using RandomStates = std::vector<std::pair<at::Generator, at::Tensor>>;

RandomStates random_states(const train::Parallel& parallel);

/// Does the step again and says in a line what each rank found of its own: the loss and its rows, the first unit whose
/// output was not finite, the first parameter in backward whose gradient was not. Leaves no gradients. Collective.
std::string whose_it_was(Training& training, Job& job, std::int64_t micro_batches, const RandomStates& before);

}  // namespace sealift::trainer
