// SPDX-License-Identifier: Apache-2.0
// The fine-tuning loop: steps, evaluations, checkpoints, early stop.
// Between `fine_tune`, which builds the parts, and the goal, which knows the objective.
// Every quantity is a sum over all ranks and micro-batches by the weight over all of them: the curve does not depend on
// how many ranks share a step.
#pragma once

#include "trainer/loop/training.hpp"

namespace sealift::trainer {

OptimizerOptions optimizer_options(const FineTuneOptions& options);

/// Rows of a step over all ranks.
std::int64_t rows_of_step(const FineTuneOptions& options, std::int64_t world_size);

/// The mean over all examples of `data` and the objective's metrics, in evaluation mode and without gradients.
/// Collective.
std::pair<double, nlohmann::ordered_json> evaluate(Training& training, const TokenFile& data, Goal& goal);

/// Trains from where `training` stands to its end. Collective.
void train_to_the_end(Training& training, Monitor& monitor);

}  // namespace sealift::trainer
