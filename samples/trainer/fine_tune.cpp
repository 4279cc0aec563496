// SPDX-License-Identifier: Apache-2.0
// Fine-tuning, read from the bottom: `fine_tune` is the story, each step of it a function above.
// See fine_tune.hpp. Only the policy tells one process, ddp, fsdp and hsdp apart, only `adapt` tells what is trained.
// The model is built without memory; each rank reads its own ranges of the files.
#include "fine_tune.hpp"

#include "job_policy.hpp"
#include "loop/goals.hpp"
#include "loop/loop.hpp"
#include "made_tokens.hpp"
#include "method_choice.hpp"
#include "models/hf_folder.hpp"
#include "models/moe.hpp"
#include "tuning/peft_format.hpp"
#include "tuning/qlora.hpp"

#include <fstream>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// The dtype that `precision` computes in; none: that of the parameters.
std::optional<at::ScalarType> compute_dtype(const std::string& precision) {
  if (precision == "bf16") return at::kBFloat16;
  if (precision == "fp16") return at::kHalf;
  return std::nullopt;
}

/// The settings as the core's policy. One process without a method has units too where dtypes or codecs need them.
train::Policy policy_of(const FineTuneOptions& options) {
  ParallelOptions parallel = options;
  parallel.precision = "fp32";
  auto policy = make_policy(parallel);
  if (const auto dtype = compute_dtype(options.precision)) {
    // Tables of positions are buffers, and lose what they are for in 16 bits.
    policy.precision = {.param_dtype = dtype, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat};
  }
  return policy;
}

/// `policy`, with units on one process where something needs them.
train::Policy with_units(train::Policy policy, const FineTuneOptions& options, std::int64_t world_size) {
  const bool needs = options.precision != "fp32" || options.tuner_type == "qlora" || options.offload.size() > 0;
  if (needs && world_size == 1 && policy.method == train::ParallelMethod::None) {
    policy.method = train::ParallelMethod::Ddp;
  }
  return policy;
}

/// What is trained is kept in fp32; what is frozen in the dtype that is computed in.
at::ScalarType parameter_dtype(const FineTuneOptions& options) {
  return options.has_adapters() ? compute_dtype(options.precision).value_or(at::kFloat) : at::kFloat;
}

Model build_on_meta(const FineTuneOptions& options, const DecoderConfig& config) {
  const train::MetaDevice meta;
  return Model(config, DecoderOptions{.recompute = options.gradient_checkpointing, .dtype = parameter_dtype(options)});
}

/// The config of the model that is trained: for `reward` one with a score, whatever the folder has.
DecoderConfig config_of(const FineTuneOptions& options) {
  auto config = read_decoder_config(options.model);
  if (config.reward_head && options.task != Task::Reward) {
    throw std::invalid_argument(options.model + " is a reward model; sealift-train " + to_string(options.task) +
                                " needs a language model");
  }
  config.reward_head = options.task == Task::Reward;
  if (options.expert_model_parallel_size > 1 && !config.experts) {
    throw std::invalid_argument("expert_model_parallel_size is " + std::to_string(options.expert_model_parallel_size) +
                                ", but " + options.model + " has no experts; leave it out");
  }
  return config;
}

/// The adapters that the settings describe, or the folder that they go on from. A score is trained whole beside them.
LoraOptions lora_of(const FineTuneOptions& options) {
  auto lora = options.adapters.empty() ? LoraOptions{.rank = options.lora_rank,
                                                     .alpha = options.lora_alpha,
                                                     .dropout = options.lora_dropout,
                                                     .target_modules = options.target_modules,
                                                     .target_regex = options.target_regex,
                                                     .modules_to_save = options.modules_to_save,
                                                     .rank_stabilized = options.use_rslora,
                                                     .dora = options.use_dora}
                                       : read_adapter_config(options.adapters.front());
  auto& whole = lora.modules_to_save;
  if (options.task == Task::Reward && std::find(whole.begin(), whole.end(), kScore) == whole.end()) {
    whole.push_back(kScore);
  }
  return lora;
}

/// Makes of the model what is trained; before parallelize().
void adapt(Model& model, const FineTuneOptions& options) {
  if (options.has_adapters()) add_lora(*model, lora_of(options));
}

/// Where first values come from: the model's files, and of adapters and a new score the seed; without files, for
/// pretrain, the seed.
struct FirstValues {
  std::unique_ptr<train::Source> score = {};  ///< under `base`
  std::unique_ptr<train::Source> base = {};
  std::unique_ptr<train::Source> adapted = {};  ///< over `base`

  train::Source* source() const { return adapted ? adapted.get() : base.get(); }
};

FirstValues first_values_of(const FineTuneOptions& options, const DecoderConfig& config) {
  const std::filesystem::path folder(options.model);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const bool has_files = std::filesystem::exists(folder / "model.safetensors") ||
                         std::filesystem::exists(folder / "model.safetensors.index.json");
  if (!has_files && options.task == Task::Pretrain) {
    return {.base = std::make_unique<train::InitFunction>(first_values(config, seed))};
  }
  FirstValues values;
  if (config.reward_head) values.score = std::make_unique<train::InitFunction>(first_values(config, seed));
  values.base = model_folder_source(folder, config, values.score.get());
  if (!options.has_adapters()) return values;
  if (options.adapters.empty()) {
    values.adapted = std::make_unique<LoraSource>(*values.base, lora_of(options), seed);
  } else {
    const std::filesystem::path from(options.adapters.front());
    values.adapted = adapter_source(from, *values.base, read_adapter_config(from));
  }
  return values;
}

Schedule schedule_of(const FineTuneOptions& options, std::int64_t steps) {
  return Schedule({.type = options.lr_scheduler_type,
                   .parameters = options.lr_scheduler_kwargs,
                   .learning_rate = options.peak_rate(),
                   .steps = steps,
                   .warmup_steps = options.warmup_steps,
                   .warmup_ratio = options.warmup_ratio});
}

struct ModelSize {
  std::int64_t parameters = 0, trainable = 0;
};

ModelSize size_of(const torch::nn::Module& model) {
  ModelSize size;
  for (const auto& parameter : model.parameters()) {
    size.parameters += parameter.numel();
    if (parameter.requires_grad()) size.trainable += parameter.numel();
  }
  return size;
}

struct Data {
  TokenFile training;
  std::optional<TokenFile> evaluation = {};
};

/// Opens and checks `training` and `evaluation`, which may be empty; `checks`: reads them whole.
Data open_data(const std::string& training, const std::string& evaluation, const FineTuneOptions& options,
               const DecoderConfig& config, bool checks) {
  Data data{open_tokens(training, options, config, checks)};
  if (!evaluation.empty()) data.evaluation = open_tokens(evaluation, options, config, checks);
  return data;
}

/// The job's data, made of JSON lines where it is not there yet; each host's first rank reads them whole. Collective.
Data data_of(const FineTuneOptions& options, const DecoderConfig& config, const train::Launch& launch,
             train::Groups& world) {
  const auto training = made_tokens(options.dataset, "dataset", options, world);
  const auto evaluation =
      options.eval_strategy == "no" ? "" : made_tokens(options.val_dataset, "val_dataset", options, world);
  return open_data(training, evaluation, options, config, launch.local_rank == 0);
}

void say_what_is_done(const FineTuneOptions& options, const Place& place, const ModelSize& size,
                      const Training& training) {
  if (!place.is_first()) return;
  if (!options.ignored.empty()) {
    std::string keys;
    for (const auto& key : options.ignored) keys += (keys.empty() ? "" : ", ") + key;
    std::cerr << "note: ignored, since they change no number here: " << keys << '\n';
  }
  std::cerr << "training " << size.trainable << " of " << size.parameters << " parameters for " << training.steps
            << " steps of " << rows_of_step(options, place.world_size) << " rows\n";
  if (training.position.step > 0) std::cerr << "resuming after step " << training.position.step << '\n';
}

/// Goes on from a checkpoint, if there is one to go on from. Collective.
void resume(Training& training) {
  const auto checkpoint = checkpoint_to_resume(training.options);
  if (!checkpoint) return;
  training.position =
      load_position(*checkpoint, training.options, rows_of_step(training.options, training.place.world_size),
                    *training.model, training.parallel, training.optimizer);
  training.sampler.resume(training.position.sampler);
  if (training.options.precision == "fp16") training.scaler.load_state(training.position.scaler);
  const auto patience = training.options.early_stop_interval;
  training.position.stopped = patience > 0 && training.position.without_better() >= patience;
}

/// The model of the least evaluation loss in place of the last, where the job says so. Collective.
void take_best(Training& training) {
  const auto best = training.position.best();
  if (!training.options.load_best_model_at_end || !best) return;
  const auto checkpoint = train::latest_checkpoint(best_folder(training.options));
  TORCH_CHECK(checkpoint, best_folder(training.options).string(), " has no whole checkpoint of the best model, step ",
              best->step);
  train::load_checkpoint(*checkpoint, *training.model, training.parallel, &training.optimizer);
  if (training.place.is_first()) {
    std::cerr << "taking the model of step " << best->step << ", whose evaluation loss " << best->loss
              << " is the least\n";
  }
}

/// A folder of the output that is not there, or no more: what a run that ended before has left. Collective.
std::filesystem::path new_folder(Training& training, const char* name) {
  const auto folder = std::filesystem::path(training.options.out) / name;
  if (training.place.is_first()) std::filesystem::remove_all(folder);
  training.world.world.barrier();
  return folder;
}

/// Writes what was trained; what and where. Collective.
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

/// The content of result.json, without the monitor's part.
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

/// Tokens of a row, as far as they are known before the data are: what a row may have at most.
std::int64_t planned_length(const FineTuneOptions& options, const DecoderConfig& config) {
  constexpr std::int64_t kUnknown = 2048;
  if (options.max_length > 0) return options.max_length;
  return options.packing ? config.max_positions : std::min(config.max_positions, kUnknown);
}

/// The job as the planner sees it, but for its method.
plan::Way planned_way(const FineTuneOptions& options, const DecoderConfig& config, std::int64_t world_size) {
  const auto& offload = options.offload;
  const auto offloads = [&](const char* what) {
    return std::find(offload.begin(), offload.end(), what) != offload.end();
  };
  const auto sequences = options.task == Task::Dpo || options.task == Task::Reward ? 2 : 1;
  return {.micro_batches = options.micro_batches(world_size),
          .batch = {.rows = options.per_device_train_batch_size * sequences, .length = planned_length(options, config)},
          .recompute = options.gradient_checkpointing,
          .reshard_after_forward = options.reshard_after_forward.value_or(true),
          .reduce_every_micro_batch = options.reduce_every_micro_batch,
          .offload_parameters = offloads("parameters"),
          .offload_gradients = offloads("gradients"),
          .offload_moments = offloads("optimizer_state")};
}

/// The model that is trained, in numbers; in units of blocks, however the job wraps.
plan::Candidate planned_candidate(const FineTuneOptions& options, const DecoderConfig& config) {
  auto model = build_on_meta(options, config);
  adapt(model, options);
  train::Policy policy{.method = train::ParallelMethod::Fsdp};
  if (options.tuner_type == "qlora") policy.store = store_projections(*model);
  const auto lora = options.has_adapters() ? std::optional(lora_of(options)) : std::nullopt;
  return {options.tuner_type, options.precision == "fp32" ? 4 : 2,
          plan::model_shape(*model, config, policy, lora ? &*lora : nullptr)};
}

/// Sets the method of `options`, which leave it open, and the place that follows from it. Collective.
void settle_method(FineTuneOptions& options, const DecoderConfig& config, Place& place, const train::Launch& launch,
                   const train::World& ranks) {
  const auto of_host = launch.local_world_size;
  const auto choice =
      choose_method(planned_candidate(options, config), planned_way(options, config, ranks.size), ranks.size, of_host,
                    least_free_memory(ranks, place.device.device, of_host), place.device.device);
  options.parallel_method = choice.method;
  options.shard_size = choice.shard_size;
  place.policy = with_units(policy_of(options), options, ranks.size);
  place.mesh = train::make_mesh(place.policy, ranks.size);
  if (!place.is_first()) return;
  for (const auto& line : choice.lines) std::cerr << line << '\n';
}

}  // namespace

nlohmann::ordered_json describe(const FineTuneOptions& options, std::int64_t world_size) {
  const auto config = config_of(options);
  const auto data = open_data(options.dataset.front(), "", options, config, /*checks=*/false);
  auto sampler = make_sampler(data.training, options, config, 0, world_size);
  const auto steps = steps_of(sampler, options);
  const Schedule schedule = schedule_of(options, steps);
  std::vector<double> rates;
  for (std::int64_t step = 0; step < std::min<std::int64_t>(steps, 1000); ++step) rates.push_back(schedule.rate(step));
  auto model = build_on_meta(options, config);
  adapt(model, options);
  const auto size = size_of(*model);
  return {{"model", options.model},
          {"family", config.family},
          {"parameters", size.parameters},
          {"trainable_parameters", size.trainable},
          {"examples", data.training->examples()},
          {"tokens", data.training->header().tokens},
          {"rows_of_a_step", rows_of_step(options, world_size)},
          {"micro_batches", options.micro_batches(world_size)},
          {"steps", steps},
          {"warmup_steps", schedule.warmup_steps()},
          {"learning_rates", rates},
          {"ignored", options.ignored},
          {"configuration", comparable(options)}};
}

nlohmann::ordered_json fine_tune(const FineTuneOptions& given, const train::Launch& launch,
                                 std::optional<train::Groups>& world) {
  auto options = given;
  const bool chooses = options.parallel_method == "auto";
  if (chooses) options.parallel_method = launch.world_size == 1 ? "none" : "ddp";  // until ranks have met
  auto place = place_in_world(with_units(policy_of(options), options, launch.world_size), options, launch);
  const auto micro_batches = options.micro_batches(place.world_size);
  const auto config = config_of(options);
  std::optional<train::World> ranks;
  if (chooses) {
    ranks = find_ranks(place, options, launch);
    settle_method(options, config, place, launch, *ranks);
  }
  Monitor monitor(options, place.watched(micro_batches));
  if (!ranks) ranks = find_ranks(place, options, launch);
  world = make_groups(place, *ranks, {kExpertAxis, options.expert_model_parallel_size});
  monitor.started("connect");
  auto data = data_of(options, config, launch, *world);

  torch::manual_seed(static_cast<std::uint64_t>(options.seed + place.rank));  // of dropout
  auto model = build_on_meta(options, config);
  adapt(model, options);
  const auto size = size_of(*model);
  monitor.started("model");
  const auto values = first_values_of(options, config);
  auto policy = place.policy;
  if (options.tuner_type == "qlora") policy.store = store_projections(*model);
  auto parallel = train::parallelize(*model, *world, policy, values.source());
  parallel.observe(monitor.timeline());
  print_advice(place, parallel, micro_batches);
  monitor.started("parallelize");

  auto goal = make_goal(options, config);
  auto evaluation_goal = data.evaluation ? make_goal(options, config) : nullptr;
  std::vector<GoalOf> goals{{goal.get(), &data.training}};
  if (evaluation_goal) goals.push_back({evaluation_goal.get(), &*data.evaluation});
  ask_reference(goals, model, options, place, *world);
  const auto rates = optimizer_options(options);
  auto groups = decay_groups(parallel.named_shards(), rates);
  const auto moments = place.policy.offload.optimizer_state ? train::Moments::OnHost : train::Moments::WithParameter;
  auto optimizer = make_optimizer(groups, rates, moments);
  parallel.check_optimizer(optimizer);
  train::GradScaler scaler(parallel, {.enabled = options.precision == "fp16"});
  auto sampler = make_sampler(data.training, options, config, place.rank, place.world_size);
  const auto steps = steps_of(sampler, options);
  Training training{.options = options,
                    .place = place,
                    .world = *world,
                    .model = model,
                    .parallel = std::move(parallel),
                    .groups = std::move(groups),
                    .optimizer = std::move(optimizer),
                    .scaler = std::move(scaler),
                    .schedule = schedule_of(options, steps),
                    .steps = steps,
                    .goal = std::move(goal),
                    .data = std::move(data.training),
                    .sampler = std::move(sampler),
                    .evaluation = std::move(data.evaluation),
                    .evaluation_goal = std::move(evaluation_goal)};
  resume(training);
  monitor.started("load");
  say_what_is_done(options, place, size, training);

  *world->traffic = {};
  const auto start = Clock::now();
  train_to_the_end(training, monitor);
  const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();
  take_best(training);
  const auto saved = save_result(training, values);
  auto result = report(training, size, saved, seconds);
  write_result(result, monitor, place, options, *world);
  return result;
}

}  // namespace sealift::trainer
