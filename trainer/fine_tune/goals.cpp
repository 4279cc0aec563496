// SPDX-License-Identifier: Apache-2.0
// Settings as objectives, and a pass over the data for the reference.
// See goals.hpp.
// A reference model of its own is loaded as the trained one is, asked, and freed before training begins.
#include "trainer/fine_tune/goals.hpp"

#include "trainer/fine_tune/training_data.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/models/weight_files.hpp"
#include "trainer/tuning/lora.hpp"

namespace sealift::trainer {
namespace {

void refuse_unless(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

/// The formula of rlhf_type and loss_type with the job's numbers in it.
PreferenceOptions preference_of(const FineTuneOptions& options) {
  auto method = options.rlhf_type;
  if (!options.loss_type.empty() && options.loss_type != "sigmoid") {
    refuse_unless(method == "dpo" || options.loss_type == method,
                  "loss_type " + options.loss_type + " with rlhf_type " + method + "; it belongs to dpo");
    method = options.loss_type;
  }
  auto result = preference_options(method);
  if (options.beta) (method == "orpo" ? result.weight : result.beta) = *options.beta;
  result.label_smoothing = options.label_smoothing;
  if (options.rpo_alpha) result.nll_weight = *options.rpo_alpha;
  if (options.cpo_alpha) result.nll_weight = *options.cpo_alpha;
  if (options.simpo_gamma) result.margin = *options.simpo_gamma;
  refuse_unless(!options.simpo_gamma || method == "simpo", "simpo_gamma with rlhf_type " + method);
  refuse_unless(!options.cpo_alpha || method == "cpo" || method == "simpo", "cpo_alpha with rlhf_type " + method);
  refuse_unless(result.reference || options.ref_model.empty(),
                "ref_model with rlhf_type " + method + ", which has no reference");
  return result;
}

KtoOptions kto_of(const FineTuneOptions& options) {
  return {.beta = options.beta.value_or(0.1),
          .desirable_weight = options.desirable_weight,
          .undesirable_weight = options.undesirable_weight,
          .distance = options.loss_type != "apo_zero_unpaired"};
}

enum class Answers { Own, Mismatched };

/// [sequences of `data`] fp32 on every rank's host: the log-probability of each answer under `model`. Collective.
at::Tensor answer_log_probs(Model& model, const TokenFile& data, Answers which, std::int64_t longest, std::int64_t rows,
                            const Place& place, train::Groups& world) {
  at::NoGradGuard no_grad;
  model->eval();
  const auto each = static_cast<std::int64_t>(data->sequences_of_example());
  const auto device = place.device.device;
  auto result =
      torch::zeros({static_cast<std::int64_t>(data->examples()) * each}, at::dtype(at::kFloat).device(device));
  for (const auto& examples : rows_in_order(data.view(), rows, place.rank, place.world_size)) {
    const auto batch =
        to_device(examples.empty()        ? empty_batch(data.view(), kEmptyTokens)
                  : which == Answers::Own ? make_batch(data.view(), examples)
                                          : make_mismatched_batch(data.view(), examples, {.cut_at = longest}),
                  device);
    const auto log_probs = std::get<0>(model(batch.tokens));
    if (examples.empty()) continue;
    const auto sums = sequence_sums(log_probs, batch.sequence, batch.counts, batch.sequences);
    result.narrow(0, each * examples.front().front(), sums.size(0)).copy_(sums);
  }
  model->train();
  world.world.all_reduce(result).wait();
  return result.cpu();
}

std::int64_t longest_of(const FineTuneOptions& options, const DecoderConfig& config) {
  return options.max_length > 0 ? options.max_length : config.max_positions;
}

void ask(Model& model, const std::vector<GoalOf>& goals, const FineTuneOptions& options, const Place& place,
         train::Groups& world) {
  const auto longest = longest_of(options, model->config());
  const auto log_probs = [&](const TokenFile& data, Answers which) {
    return answer_log_probs(model, data, which, longest, options.per_device_train_batch_size, place, world);
  };
  for (const auto& [goal, data] : goals) {
    if (!goal->needs_reference()) continue;
    Reference reference{log_probs(*data, Answers::Own), {}};
    if ((*data)->header().kind == ExampleKind::Labelled) reference.mismatched = log_probs(*data, Answers::Mismatched);
    goal->set_reference(std::move(reference));
  }
}

/// The folder of a reference that is a model of its own; empty: what is trained says it, with adapters or without.
/// Modules that an adapter's folder brought whole cannot be switched off, so there the base is read again.
std::string reference_folder(const Model& model, const FineTuneOptions& options) {
  if (!options.ref_model.empty()) return options.ref_model;
  if (options.adapters.empty() || !options.ref_adapters.empty()) return "";
  for (const auto& [path, adapter] : find_adapters(*model)) {
    if (!adapter->options().modules_to_save.empty()) return options.model;
  }
  return "";
}

}  // namespace

std::unique_ptr<Goal> make_goal(const FineTuneOptions& options, const DecoderConfig& config) {
  switch (options.task) {
    case Task::Sft:
    case Task::Pretrain:
      return std::make_unique<CausalGoal>();
    case Task::Dpo:
      return std::make_unique<PreferenceGoal>(preference_of(options));
    case Task::Kto:
      return std::make_unique<KtoGoal>(kto_of(options), longest_of(options, config));
    case Task::Reward:
      return std::make_unique<RewardGoal>(RewardOptions{.center_coefficient = options.center_rewards_coefficient});
  }
  TORCH_CHECK(false, "no such task");
}

void ask_reference(const std::vector<GoalOf>& goals, Model& model, const FineTuneOptions& options, const Place& place,
                   train::Groups& world) {
  if (std::none_of(goals.begin(), goals.end(), [](const auto& each) { return each.goal->needs_reference(); })) return;
  const auto folder = reference_folder(model, options);
  if (folder.empty()) {
    const WithoutAdapters plain(*model, options.ref_adapters.empty());
    return ask(model, goals, options, place, world);
  }
  auto config = read_decoder_config(folder);
  if (stores_own_head(folder, config)) config.tied_head = false;
  refuse_unless(config.vocabulary >= model->config().vocabulary && !config.reward_head,
                "ref_model " + folder + " is no language model over the tokens of " + options.model);
  std::optional<Model> reference;
  {
    const train::MetaDevice meta;
    reference.emplace(config, DecoderOptions{.dtype = place.policy.precision.param_dtype.value_or(at::kFloat)});
  }
  for (auto& parameter : (*reference)->parameters()) parameter.set_requires_grad(false);
  const auto source = model_folder_source(folder, config);
  const auto parallel = train::parallelize(**reference, world, place.policy, source.get());
  ask(*reference, goals, options, place, world);
}

}  // namespace sealift::trainer
