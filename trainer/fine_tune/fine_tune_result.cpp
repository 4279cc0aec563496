// SPDX-License-Identifier: Apache-2.0
// See fine_tune_result.hpp.
#include "trainer/fine_tune/fine_tune_result.hpp"

#include "trainer/models/hf_folder.hpp"
#include "trainer/tuning/peft_format.hpp"

namespace sealift::trainer {
namespace {

/// A folder of the output that is not there, or no more: what a run that ended before has left. Collective.
std::filesystem::path new_folder(Training& training, const char* name) {
  const auto folder = std::filesystem::path(training.options.out) / name;
  if (training.place.is_first()) std::filesystem::remove_all(folder);
  training.world.world.barrier();
  return folder;
}

}  // namespace

void take_best(Training& training) {
  const auto best = training.position.best();
  if (!training.options.load_best_model_at_end) return;
  if (!best) {
    const bool says = training.place.is_first() && !training.position.evaluations.empty();
    if (says) std::cerr << "note: no evaluation loss was finite; the last model is taken, not a best one\n";
    return;
  }
  const auto checkpoint = best_checkpoint(training.options, best->step);
  train::load_checkpoint(checkpoint, *training.model, training.parallel, &training.optimizer);
  if (training.place.is_first()) {
    std::cerr << "taking the model of step " << best->step << ", whose evaluation loss " << best->loss
              << " is the least\n";
  }
}

std::string save_result(Training& training, const FirstValues& values) {
  const auto& [options, model] = std::tie(training.options, training.model);
  SaveFolderOptions how{.dtype = model->config().dtype};
  if (!options.has_adapters()) {
    const auto folder = new_folder(training, "model");
    save_model_folder(folder, options.model, *model, training.parallel, how);
    return "model in " + folder.string();
  }
  const auto folder = new_folder(training, "adapter");
  save_adapter(folder, *model, training.parallel, options.model);
  if (options.merge_lora) {
    how.changes = merge_adapters(*model, training.parallel, values.base.get());
    save_model_folder(new_folder(training, "merged"), options.model, *model, training.parallel, how);
  }
  return "adapter in " + folder.string();
}

nlohmann::ordered_json report(const Training& training, const ModelSize& size, const std::string& saved,
                              double seconds) {
  const auto& [options, place, position] = std::tie(training.options, training.place, training.position);
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
      {"resumed_after", training.resumed_after},
      {"losses", position.losses},
      {"final_loss", position.losses.empty() ? 0.0 : position.losses.back()},
      {"evaluations", evaluations},
      {"stopped_early", position.stopped},
      {"skipped_steps", position.skipped},
      {"saved", saved},
      {"torch_version", TORCH_VERSION},
      {"device", place.device.description},
      {"threads", place.threads},
      {"seconds", seconds},
      {"configuration", comparable(options)},
  };
  if (const auto best = position.best()) result["best"] = {{"step", best->step}, {"loss", best->loss}};
  return result;
}

}  // namespace sealift::trainer
