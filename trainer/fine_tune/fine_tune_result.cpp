// SPDX-License-Identifier: Apache-2.0
// See fine_tune_result.hpp.
#include "trainer/fine_tune/fine_tune_result.hpp"

#include "trainer/fine_tune/best_model.hpp"
#include "trainer/fine_tune/conditions.hpp"
#include "trainer/fine_tune/trained_end.hpp"
#include "trainer/models/attention_choice.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/ranks/patient_save.hpp"
#include "trainer/tuning/peft_format.hpp"

namespace sealift::trainer {
namespace {

/// A folder of the output that is not there, or no more: what a run that ended before has left. Collective.
std::filesystem::path new_folder(FineTuning& tuning, const char* name) {
  const auto folder = std::filesystem::path(tuning.options.out) / name;
  if (tuning.training.place.is_first()) std::filesystem::remove_all(folder);
  tuning.training.world.world.barrier();
  return folder;
}

}  // namespace

void take_best(FineTuning& tuning) {
  auto& training = tuning.training;
  const auto best = training.position.best();
  if (!tuning.options.load_best_model_at_end || training.ended_by) return;
  if (!best) {
    const bool says = training.place.is_first() && !training.position.evaluations.empty();
    if (says) std::cerr << "note: no evaluation loss was finite; the last model is taken, not a best one\n";
    return;
  }
  const auto checkpoint = best_checkpoint(tuning.options, best->step);
  train::load_checkpoint(checkpoint, *tuning.model, training.parallel, &training.optimizer);
  if (training.place.is_first()) {
    std::cerr << "taking the model of step " << best->step << ", whose evaluation loss " << best->loss
              << " is the least\n";
  }
}

namespace {

/// What of the answers' ends the model's own folder does not say, for the result's server to heed.
std::optional<std::int64_t> end_to_add(const FineTuning& tuning) {
  const auto& options = tuning.options;
  if (options.task == Task::Reward) return {};
  const bool says = tuning.training.place.is_first();
  if (says && lacks_template(tuning.data, options.model)) {
    std::cerr << "note: the data were rendered with a chat template, and " << options.model
              << " has none; put it into chat_template.jinja of the result\n";
  }
  const auto end = trained_end(tuning.data, options.model);
  const auto& known = tuning.model->config().end_tokens;
  if (!end || std::find(known.begin(), known.end(), *end) != known.end()) return {};
  if (says) {
    std::cerr << "note: answers end with token " << *end << ", which config.json does not name as eos_token_id; "
              << (options.has_adapters() ? "an adapter has no place for it: generate with it as eos_token_id"
                                         : "generation_config.json of the result does")
              << '\n';
  }
  return end;
}

std::string save_model(FineTuning& tuning, const FirstValues& values) {
  const auto& [options, model] = std::tie(tuning.options, tuning.model);
  auto& parallel = tuning.training.parallel;
  SaveFolderOptions how{.dtype = model->config().dtype, .end_token = end_to_add(tuning)};
  if (!options.has_adapters()) {
    const auto folder = new_folder(tuning, "model");
    save_model_folder(folder, options.model, *model, parallel, how);
    return "model in " + folder.string();
  }
  const auto folder = new_folder(tuning, "adapter");
  save_adapter(folder, *model, parallel, options.model);
  if (options.merge_lora) {
    how.changes = merge_adapters(*model, parallel, values.base.get());
    save_model_folder(new_folder(tuning, "merged"), options.model, *model, parallel, how);
  }
  return "adapter in " + folder.string();
}

}  // namespace

std::string save_result(FineTuning& tuning, const FirstValues& values) {
  const auto& training = tuning.training;
  if (training.ended_by) {
    return training.saved_after > 0 ? "not finished: the same command goes on from the checkpoint of step " +
                                          std::to_string(training.saved_after)
                                    : "not finished: nothing is saved";
  }
  std::string saved;
  save_with_patience(training.place.is_first(), [&] { saved = save_model(tuning, values); });
  return saved;
}

nlohmann::ordered_json report(const FineTuning& tuning, const ModelSize& size, const std::string& saved,
                              double seconds) {
  const auto& [options, place, position] = std::tie(tuning.options, tuning.training.place, tuning.training.position);
  nlohmann::ordered_json evaluations = nlohmann::ordered_json::array();
  for (const auto& each : position.evaluations) {
    evaluations.push_back({{"step", each.step}, {"loss", each.loss}});
    if (!each.metrics.empty()) evaluations.back()["metrics"] = each.metrics;
  }
  nlohmann::ordered_json result{
      {"parallel_method", options.parallel_method.empty() ? "none" : options.parallel_method},
      {"world_size", place.world_size},
      {"mesh", {{"replicate", place.mesh.replicate}, {"shard", place.mesh.shard}}},
      {"expert_ranks", options.expert_model_parallel_size},
      {"tuner_type", options.tuner_type},
      {"parameters", size.parameters},
      {"trainable_parameters", size.trainable},
      {"steps", position.step},
      {"resumed_after", tuning.training.resumed_after},
      {"losses", position.losses},
      {"final_loss", position.losses.empty() ? 0.0 : position.losses.back()},
      {"evaluations", evaluations},
      {"stopped_early", position.stopped},
      {"skipped_steps", position.skipped},
      {"saved", saved},
      {"torch_version", TORCH_VERSION},
      {"device", place.device.description},
      {"attention", attention_that_ran()},
      {"threads", at::get_num_threads()},
      {"vector_units", vector_units()},
      {"seconds", seconds},
      {"configuration", comparable(options)},
  };
  add_ending(tuning.training, result);
  if (const auto best = position.best()) result["best"] = {{"step", best->step}, {"loss", best->loss}};
  return result;
}

}  // namespace sealift::trainer
