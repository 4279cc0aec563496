// SPDX-License-Identifier: Apache-2.0
// A fine-tuning job as the loop asks it: rows of examples, a goal over them, evaluations, the best, an early stop.
// Between `fine_tune`, which builds the parts, and the goal, which knows the objective.
// Every quantity is a sum over all ranks and micro-batches by the weight over all of them: the curve does not depend on
// how many ranks share a step.
#pragma once

#include "trainer/fine_tune/fine_tuning.hpp"

namespace sealift::trainer {

/// Rows of a step over all ranks.
std::int64_t rows_of_step(const FineTuneOptions& options, std::int64_t world_size);

/// Trains from where `tuning` stands to its end. Collective.
void train_to_the_end(FineTuning& tuning, Monitor& monitor);

}  // namespace sealift::trainer
