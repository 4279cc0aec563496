// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: what `run.cpp` saves besides the model, and resumes from.
// Around the loop: resume before the first step, save after every checkpoint_every-th and the last.
// The loss curve is part of it, so that an interrupted run ends with the result of an uninterrupted one.
#pragma once

#include "trainer/loop/loop.hpp"
#include "trainer/own_bundle.hpp"
#include "trainer/settings/options.hpp"

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// What a checkpoint holds about the run besides the model. A job may resume only from one with equal settings that
/// change the numbers, except for the number of steps.
inline train::TrainingState training_state(const Options& options, const Position& position) {
  auto job = comparable(options);
  job.erase("steps");
  return {.step = position.step,
          .sampler_position = position.step * options.global_batch,
          .seed = static_cast<std::uint64_t>(options.seed),
          .notes = {{"job", nlohmann::json(job).dump()}, {"losses", nlohmann::json(position.losses).dump()}}};
}

/// Goes on from the last whole checkpoint of `options.checkpoint_folder`, if there is one and the run is to resume.
/// Collective.
inline void resume(Training& training, const Options& options, torch::nn::Module& model) {
  if (options.checkpoint_folder.empty()) return;
  const auto last = train::latest_checkpoint(options.checkpoint_folder);
  if (!last) return;
  TORCH_CHECK(options.resume == "auto", last->string(), " is there but resume is none; use resume = \"auto\" to go on ",
              "from it, or another checkpoint_folder");
  auto& position = training.position;
  const auto job = training_state(options, position).notes.at("job");
  const auto stored = train::read_index(*last).state.notes;
  TORCH_CHECK(stored.contains("job") && stored.contains("losses") && stored.at("job") == job, last->string(),
              " is of another job: ", stored.contains("job") ? stored.at("job") : "unknown", "; this one is ", job);
  const auto state = train::load_checkpoint(*last, model, training.parallel, &training.optimizer);
  position.step = state.step;
  position.losses = nlohmann::json::parse(state.notes.at("losses")).get<std::vector<double>>();
  TORCH_CHECK(static_cast<std::int64_t>(position.losses.size()) == position.step, last->string(), " has ",
              position.losses.size(), " losses after ", position.step, " steps; it is damaged");
}

/// Whether a checkpoint is saved after step `step`.
inline bool is_due(const Options& options, std::int64_t step) {
  if (options.checkpoint_folder.empty()) return false;
  return step == options.steps || (options.checkpoint_every > 0 && step % options.checkpoint_every == 0);
}

/// Saves what a run goes on from. Collective.
inline void save(Training& training, const Options& options, const torch::nn::Module& model) {
  auto state = training_state(options, training.position);
  if (training.place.is_first()) state.notes["bundle"] = own_bundle().dump();  // it writes the index
  train::save_checkpoint(options.checkpoint_folder, model, training.parallel, &training.optimizer, state,
                         {.keep_last = options.keep_checkpoints});
}

}  // namespace sealift::trainer
