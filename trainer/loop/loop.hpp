// SPDX-License-Identifier: Apache-2.0
// The fine-tuning loop: steps, evaluations, checkpoints, early stop.
// Between `fine_tune`, which builds the parts, and the goal, which knows the objective.
// Every quantity is a sum over all ranks and micro-batches by the weight over all of them: the curve does not depend on
// how many ranks share a step.
#pragma once

#include "trainer/loop/best_model.hpp"
#include "trainer/loop/decay_groups.hpp"
#include "trainer/loop/goal.hpp"
#include "trainer/loop/position.hpp"
#include "trainer/loop/schedule.hpp"
#include "trainer/loop/training_data.hpp"
#include "trainer/ranks/place.hpp"

namespace sealift::trainer {

/// Everything that a step changes or reads.
struct Training {
  const FineTuneOptions& options;
  const Place& place;
  train::Groups& world;
  Model model;
  train::Parallel parallel;
  std::vector<ShardGroup> groups;
  train::FusedAdamW optimizer;
  train::GradScaler scaler;
  Schedule schedule;
  std::int64_t steps = 0;  ///< of the whole job
  std::unique_ptr<Goal> goal;
  TokenFile data;
  Sampler sampler;
  std::optional<TokenFile> evaluation;  ///< data for it
  std::unique_ptr<Goal> evaluation_goal;
  Position position;
  std::int64_t saved_best = -1;  ///< step of the best evaluation when the last checkpoint was saved; -1: none
};

OptimizerOptions optimizer_options(const FineTuneOptions& options);

/// Rows of a step over all ranks.
std::int64_t rows_of_step(const FineTuneOptions& options, std::int64_t world_size);

/// The mean over all examples of `data` and the objective's metrics, in evaluation mode and without gradients.
/// Collective.
std::pair<double, nlohmann::ordered_json> evaluate(Training& training, const TokenFile& data, Goal& goal);

/// Trains from where `training` stands to its end. Collective.
void train_to_the_end(Training& training, Monitor& monitor);

}  // namespace sealift::trainer
