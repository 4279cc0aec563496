// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: what `run.cpp` saves besides the model, and resumes from.
// Around the loop: resume before the first step, save after every checkpoint_every-th and the last.
// The loss curve is part of it, so that an interrupted run ends with the result of an uninterrupted one.
#pragma once

#include "trainer/loop/computed_with.hpp"
#include "trainer/loop/last_good.hpp"
#include "trainer/loop/loop.hpp"
#include "trainer/loop/saving.hpp"
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

/// The losses in a checkpoint's notes; train::DamagedCheckpoint where they are not one for each step.
inline std::vector<double> losses_in(const train::TrainingState& state, const std::filesystem::path& checkpoint) {
  std::vector<double> losses;
  try {
    losses = nlohmann::json::parse(state.notes.at("losses")).get<std::vector<double>>();
  } catch (const nlohmann::json::exception& error) {
    throw train::DamagedCheckpoint(checkpoint.string() + " is damaged: " + error.what());
  }
  if (static_cast<std::int64_t>(losses.size()) == state.step) return losses;
  throw train::DamagedCheckpoint(
      c10::str(checkpoint.string(), " has ", losses.size(), " losses after ", state.step, " steps; it is damaged"));
}

/// Goes on from the last whole checkpoint of `options.checkpoint_folder` that is not damaged, if there is one and the
/// run is to resume. Collective.
inline void resume(Training& training, const Options& options, torch::nn::Module& model) {
  if (options.checkpoint_folder.empty()) return;
  const auto checkpoints = whole_checkpoints(options.checkpoint_folder);
  TORCH_CHECK(options.resume == "auto" || checkpoints.empty(), checkpoints.front().string(), " is there but resume is ",
              "none; use resume = \"auto\" to go on from it, or another checkpoint_folder");
  auto& position = training.position;
  const auto job = training_state(options, position).notes.at("job");
  go_on_from_the_last_good(checkpoints, options.checkpoint_folder, training.world.world, [&](const auto& checkpoint) {
    std::vector<double> losses;
    std::string changed;
    const auto accept = [&](const train::TrainingState& stored) {
      const bool has_notes = stored.notes.contains("job") && stored.notes.contains("losses");
      TORCH_CHECK(has_notes && stored.notes.at("job") == job, checkpoint.string(),
                  " is of another job: ", has_notes ? stored.notes.at("job") : "unknown", "; this one is ", job);
      losses = losses_in(stored, checkpoint);
      changed = other_means(stored.notes, training.place);
    };
    position.step = train::load_checkpoint(checkpoint, model, training.parallel, &training.optimizer, accept).step;
    position.losses = std::move(losses);
    if (training.place.is_first() && !changed.empty()) std::cerr << changed << '\n';
  });
}

/// Whether a checkpoint is saved after step `step`.
inline bool is_due(const Options& options, std::int64_t step) {
  if (options.checkpoint_folder.empty()) return false;
  return step == options.steps || (options.checkpoint_every > 0 && step % options.checkpoint_every == 0);
}

/// Whether the checkpoints to come will fit. Collective.
inline void ask_for_room(Training& training, const Options& options) {
  if (options.checkpoint_folder.empty()) return;
  const auto every = options.checkpoint_every > 0 ? options.checkpoint_every : options.steps;
  const auto saves = (options.steps - 1) / every + 1 - training.position.step / every;
  ask_for_room(training.world.world,
               {.folder = options.checkpoint_folder,
                .bytes = checkpoint_bytes(training.parallel, /*frozen=*/true),
                .kept = options.keep_checkpoints,
                .saves = std::min(options.steps - training.position.step, saves)},
               training.position.step > 0);
}

/// Saves what a run goes on from. Collective.
inline void save(Training& training, const Options& options, const torch::nn::Module& model) {
  auto state = training_state(options, training.position);
  state.notes.insert(computed_with(training.place));
  if (training.place.is_first()) state.notes["bundle"] = own_bundle().dump();  // it writes the index
  train::save_checkpoint(options.checkpoint_folder, model, training.parallel, &training.optimizer, state,
                         {.keep_last = options.keep_checkpoints});
}

}  // namespace sealift::trainer
