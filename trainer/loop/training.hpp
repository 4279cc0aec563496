// SPDX-License-Identifier: Apache-2.0
// What one fine-tuning run consists of while it runs: the model, the optimizer, the data, and how far it is.
// `fine_tune` builds it; the loop, its evaluations, samples and checkpoints work on it.
// One struct, since a step changes or reads all of it.
#pragma once

#include "trainer/loop/best_model.hpp"
#include "trainer/loop/decay_groups.hpp"
#include "trainer/loop/goal.hpp"
#include "trainer/loop/position.hpp"
#include "trainer/loop/training_data.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/settings/schedule.hpp"

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
  std::int64_t resumed_after = 0;  ///< a step; 0: it began anew
  std::int64_t saved_best = -1;    ///< step of the best evaluation when the last checkpoint was saved; -1: none
};

}  // namespace sealift::trainer
