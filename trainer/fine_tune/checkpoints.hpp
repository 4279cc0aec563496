// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a fine-tuning run: what is saved besides the model, and what is resumed from.
// Around the loop: resume before the first step, save when it is due; best_model.hpp keeps the best.
// A run goes on only from one of its own settings; what may differ is named here.
#pragma once

#include "trainer/json_numbers.hpp"
#include "trainer/loop/last_good.hpp"
#include "trainer/loop/position.hpp"
#include "trainer/models/weight_files.hpp"
#include "trainer/settings/fine_tune_options.hpp"

#include <sealift/train.hpp>

namespace sealift::trainer {

/// Settings that may change when a run goes on from a checkpoint: how long it runs, and where the data lie,
/// whose digest the sampler compares.
inline const std::vector<std::string>& free_to_change() {
  static const std::vector<std::string> names = {"model",
                                                 "dataset",
                                                 "val_dataset",
                                                 "max_steps",
                                                 "num_train_epochs",
                                                 "early_stop_interval",
                                                 "on_nonfinite",
                                                 "per_device_train_batch_size",
                                                 "gradient_accumulation_steps",
                                                 "load_best_model_at_end"};
  return names;
}

/// The frozen weights that a checkpoint does not have and its numbers come from, as texts of the job: the base of
/// adapters, and the reference of preferences. Read once a process.
inline Texts frozen_weights(const FineTuneOptions& options) {
  static std::map<std::string, std::string> known;
  const auto digest_of = [](const std::string& folder) {
    const auto found = known.find(folder);
    return found != known.end() ? found->second : known[folder] = weights_digest(folder);
  };
  Texts texts;
  const bool asks_itself = (options.task == Task::Dpo || options.task == Task::Kto) && options.ref_model.empty();
  if (options.has_adapters() || asks_itself) texts["weights of the base"] = digest_of(options.model);
  if (!options.ref_model.empty()) texts["weights of the reference"] = digest_of(options.ref_model);
  return texts;
}

/// `rows`: of a step over all ranks, which must stay, however many ranks share them.
inline train::TrainingState training_state(const FineTuneOptions& options, std::int64_t rows,
                                           const Position& position) {
  auto job = comparable(options);
  for (const auto& name : free_to_change()) job.erase(name);
  job["rows of a step"] = std::to_string(rows);
  job.merge(frozen_weights(options));
  nlohmann::json evaluations = nlohmann::json::array();
  for (const auto& each : position.evaluations) {
    evaluations.push_back({each.step, each.loss, each.metrics});
    if (!each.kept) evaluations.back().push_back(false);
  }
  return {.step = position.step,
          .sampler_position = position.sampler.row,
          .seed = static_cast<std::uint64_t>(options.seed),
          .notes = {{"job", nlohmann::json(job).dump()},
                    {"losses", with_all_numbers(nlohmann::json(position.losses)).dump()},
                    {"evaluations", with_all_numbers(evaluations).dump()},
                    {"sampler", position.sampler.text()},
                    {"scaler", nlohmann::json({position.scaler.scale, position.scaler.growth_tracker}).dump()},
                    {"skipped", std::to_string(position.skipped)}}};
}

inline std::filesystem::path checkpoint_folder(const FineTuneOptions& options) {
  return std::filesystem::path(options.out) / "checkpoints";
}
inline std::filesystem::path best_folder(const FineTuneOptions& options) {
  return std::filesystem::path(options.out) / "best";
}

/// What differs between two jobs, by setting: "lora_rank is 4, was 8".
inline std::string differences(const std::string& now, const std::string& then) {
  const auto mine = nlohmann::json::parse(now), theirs = nlohmann::json::parse(then, nullptr, false);
  std::string text;
  for (const auto& [name, value] : mine.items()) {
    const auto other = theirs.is_object() && theirs.contains(name) ? theirs.at(name) : nlohmann::json("unknown");
    if (other != value) text += (text.empty() ? "" : ", ") + name + " is " + value.dump() + ", was " + other.dump();
  }
  return text;
}

/// The checkpoints to go on from: the first one, or where that is damaged the next. None to begin anew.
inline std::vector<std::filesystem::path> checkpoints_to_resume(const FineTuneOptions& options) {
  const auto& from = options.resume_from_checkpoint;
  const auto own = whole_checkpoints(checkpoint_folder(options));
  TORCH_CHECK(from != "none" || own.empty(), own.front().string(),
              " exists, and resume_from_checkpoint says none; use ", "auto to go on from it, or another output_dir");
  if (from == "auto" || from == "true") return own;
  if (from == "none" || from == "false") return {};
  if (train::is_whole(from)) return {from};
  const auto theirs = whole_checkpoints(from);
  TORCH_CHECK(!theirs.empty(), "resume_from_checkpoint: ", from, " is no whole checkpoint and has none in it");
  return theirs;
}

/// Throws when OUT has checkpoints of steps after `step`, with which this run begins, that it would come to again.
inline void refuse_later_checkpoints(const FineTuneOptions& options, std::int64_t step) {
  const auto steps = train::list_steps(checkpoint_folder(options));
  for (auto later = steps.upper_bound(step); options.save_strategy != "no" && later != steps.end(); ++later) {
    TORCH_CHECK(!train::is_whole(later->second), later->second.string(), " is there, and this run begins after step ",
                step, "; go on from it with resume_from_checkpoint auto, remove it, or use another output_dir");
  }
}

/// The curves that training_state wrote. Programs before this one wrote null for what was not finite.
inline void read_curves(const std::map<std::string, std::string>& notes, Position& position) {
  for (const auto& loss : nlohmann::json::parse(notes.at("losses"))) {
    position.losses.push_back(number_in(loss) ? *number_in(loss) : loss.get<double>());
  }
  for (const auto& each : nlohmann::json::parse(notes.at("evaluations"))) {
    const auto& loss = each.at(1);
    const bool is_known = loss.is_null() || number_in(loss);
    const auto metrics = each.size() > 2 ? each.at(2) : nlohmann::json::object();
    position.evaluations.push_back({each.at(0).get<std::int64_t>(), is_known ? number_or_nan(loss) : loss.get<double>(),
                                    metrics, each.size() <= 3 || each.at(3).get<bool>()});
  }
}

/// Where a checkpoint with this state stood; train::DamagedCheckpoint where others wrote its notes.
inline Position position_in(const train::TrainingState& state, const std::filesystem::path& checkpoint) {
  Position position{.step = state.step, .skipped = std::atoll(state.notes.at("skipped").c_str())};
  try {
    read_curves(state.notes, position);
    const auto scaler = nlohmann::json::parse(state.notes.at("scaler"));
    position.scaler = {.scale = scaler.at(0).get<double>(), .growth_tracker = scaler.at(1).get<std::int64_t>()};
    position.sampler = SamplerState::parse(state.notes.at("sampler"));
  } catch (const std::exception& error) {
    throw train::DamagedCheckpoint(checkpoint.string() + " is damaged: " + error.what());
  }
  if (static_cast<std::int64_t>(position.losses.size()) != position.step) {
    throw train::DamagedCheckpoint(c10::str(checkpoint.string(), " has ", position.losses.size(), " losses after ",
                                            position.step, " steps; it is damaged"));
  }
  return position;
}

/// Sets model, optimizer and random numbers from `checkpoint` and returns where it stood; train::DamagedCheckpoint
/// where it is damaged, and nothing is set. `look` is shown the state of a checkpoint of this job before, and may
/// throw. Collective.
inline Position load_position(const std::filesystem::path& checkpoint, const FineTuneOptions& options,
                              std::int64_t rows, torch::nn::Module& model, train::Parallel& parallel,
                              torch::optim::Optimizer& optimizer,
                              const std::function<void(const train::TrainingState&)>& look = {}) {
  const auto job = training_state(options, rows, {}).notes.at("job");
  Position position;
  train::load_checkpoint(checkpoint, model, parallel, &optimizer, [&](const train::TrainingState& state) {
    for (const auto* key : {"job", "losses", "evaluations", "sampler", "scaler", "skipped"}) {
      TORCH_CHECK(state.notes.contains(key), checkpoint.string(), " is no checkpoint of fine-tuning: it has no '", key,
                  "'");
    }
    const auto& stored = state.notes.at("job");
    TORCH_CHECK(stored == job, checkpoint.string(), " is of another job: ", differences(job, stored),
                "; give the same settings, or another output_dir");
    if (look) look(state);
    position = position_in(state, checkpoint);
  });
  return position;
}

}  // namespace sealift::trainer
