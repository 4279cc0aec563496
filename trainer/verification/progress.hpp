// SPDX-License-Identifier: Apache-2.0
// The progress of a run and its checkpoints: what `run.cpp` saves besides the model, and resumes from.
// Around the loop of `run.cpp`: resume before the first step, save after every checkpoint_every-th and the last.
// The loss curve is part of it, so that an interrupted run ends with the result of an uninterrupted one.
#pragma once

#include "trainer/own_bundle.hpp"
#include "trainer/settings/options.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// Steps that are done and what they computed.
struct Progress {
  std::int64_t step = 0;
  std::vector<double> losses;
};

/// What a checkpoint holds about the run besides the model. A job may resume only from one with equal settings that
/// change the numbers, except for the number of steps.
inline train::TrainingState training_state(const Options& options, const Progress& progress) {
  auto job = comparable(options);
  job.erase("steps");
  return {.step = progress.step,
          .sampler_position = progress.step * options.global_batch,
          .seed = static_cast<std::uint64_t>(options.seed),
          .notes = {{"job", nlohmann::json(job).dump()}, {"losses", nlohmann::json(progress.losses).dump()}}};
}

/// Loads the last whole checkpoint of `options.checkpoint_folder`, if there is one and the run is to resume.
inline Progress resume(const Options& options, torch::nn::Module& model, train::Parallel& parallel,
                       torch::optim::Optimizer& optimizer) {
  Progress progress;
  if (options.checkpoint_folder.empty()) return progress;
  const auto last = train::latest_checkpoint(options.checkpoint_folder);
  if (!last) return progress;
  TORCH_CHECK(options.resume == "auto", last->string(), " is there but resume is none; use resume = \"auto\" to go on ",
              "from it, or another checkpoint_folder");
  const auto job = training_state(options, progress).notes.at("job");
  const auto stored = train::read_index(*last).state.notes;
  TORCH_CHECK(stored.contains("job") && stored.contains("losses") && stored.at("job") == job, last->string(),
              " is of another job: ", stored.contains("job") ? stored.at("job") : "unknown", "; this one is ", job);
  const auto state = train::load_checkpoint(*last, model, parallel, &optimizer);
  progress.step = state.step;
  progress.losses = nlohmann::json::parse(state.notes.at("losses")).get<std::vector<double>>();
  TORCH_CHECK(static_cast<std::int64_t>(progress.losses.size()) == progress.step, last->string(), " has ",
              progress.losses.size(), " losses after ", progress.step, " steps; it is damaged");
  return progress;
}

/// Saves if a checkpoint is due at this step, and returns whether it was. Collective.
inline bool save_if_due(const Options& options, const Progress& progress, const torch::nn::Module& model,
                        train::Parallel& parallel, torch::optim::Optimizer& optimizer) {
  if (options.checkpoint_folder.empty()) return false;
  const bool due = options.checkpoint_every > 0 && progress.step % options.checkpoint_every == 0;
  if (!due && progress.step != options.steps) return false;
  auto state = training_state(options, progress);
  if (parallel.groups().world.rank() == 0) state.notes["bundle"] = own_bundle().dump();  // it writes the index
  train::save_checkpoint(options.checkpoint_folder, model, parallel, &optimizer, state,
                         {.keep_last = options.keep_checkpoints});
  return true;
}

}  // namespace sealift::trainer
