// SPDX-License-Identifier: Apache-2.0
// What one fine-tuning run consists of while it runs: the model, the loop's part, the data and goals over them.
// `fine_tune` builds it; its job, samples and what is left at the end work on it.
// One struct, since a step changes or reads all of it.
#pragma once

#include "trainer/data/sampler.hpp"
#include "trainer/data/token_file.hpp"
#include "trainer/fine_tune/goal.hpp"
#include "trainer/loop/loop.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/schedule.hpp"

namespace sealift::trainer {

/// Everything that a step of the job changes or reads.
struct FineTuning {
  const FineTuneOptions& options;
  Model model;
  Training training;
  Schedule schedule;
  std::unique_ptr<Goal> goal;
  TokenFile data;
  Sampler sampler;
  std::optional<TokenFile> evaluation;  ///< data for it
  std::unique_ptr<Goal> evaluation_goal;
  std::int64_t saved_best = -1;  ///< step of the best evaluation when the last checkpoint was saved; -1: none
};

}  // namespace sealift::trainer
