// SPDX-License-Identifier: Apache-2.0
// Fine-tuning, read from the bottom: `fine_tune` is the story, each step of it a function above.
// See fine_tune.hpp. Only the policy tells one process, ddp, fsdp and hsdp apart, only `adapt` tells what is trained.
// The model is built without memory; each rank reads its own ranges of the files.
#include "trainer/fine_tune/fine_tune.hpp"

#include "trainer/fine_tune/fine_tune_result.hpp"
#include "trainer/fine_tune/job_model.hpp"
#include "trainer/fine_tune/method_choice.hpp"
#include "trainer/loop/goals.hpp"
#include "trainer/loop/loop.hpp"
#include "trainer/loop/made_tokens.hpp"
#include "trainer/models/moe.hpp"
#include "trainer/ranks/job_policy.hpp"
#include "trainer/ranks/same_job.hpp"
#include "trainer/tuning/qlora.hpp"

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

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

Schedule schedule_of(const FineTuneOptions& options, std::int64_t steps) {
  return Schedule({.type = options.lr_scheduler_type,
                   .parameters = options.lr_scheduler_kwargs,
                   .learning_rate = options.peak_rate(),
                   .steps = steps,
                   .warmup_steps = options.warmup_steps,
                   .warmup_ratio = options.warmup_ratio});
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

/// What all ranks must share: settings, and data by digest, since a path may be another on each host.
Texts job_of(const FineTuneOptions& options, const Data& data) {
  auto job =
      settings_of_job(options, fine_tune_settings(),
                      {"model", "dataset", "val_dataset", "adapters", "ref_model", "ref_adapters", "output_dir",
                       "resume_from_checkpoint", "device", "threads", "timeout_seconds", "trace", "tensorboard"});
  job["dataset"] = data.training->header().content_sha256;
  if (data.evaluation) job["val_dataset"] = (*data.evaluation)->header().content_sha256;
  return job;
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

/// Goes on from `checkpoint`. Collective.
void resume_from(Training& training, const std::filesystem::path& checkpoint) {
  training.position =
      load_position(checkpoint, training.options, rows_of_step(training.options, training.place.world_size),
                    *training.model, training.parallel, training.optimizer);
  training.resumed_after = training.position.step;
  training.sampler.resume(training.position.sampler);
  if (training.options.precision == "fp16") training.scaler.load_state(training.position.scaler);
  const auto patience = training.options.early_stop_interval;
  training.position.stopped = patience > 0 && training.position.without_better() >= patience;
}

/// Goes on from a checkpoint, if there is one to go on from, and leaves in OUT what it counts on. Collective.
void resume(Training& training) {
  const auto& options = training.options;
  if (const auto checkpoint = checkpoint_to_resume(options)) resume_from(training, *checkpoint);
  refuse_later_checkpoints(options, training.position.step);
  training.saved_best = best_to_begin_with(options, training.position);
  training.world.world.barrier();  // all have looked
  if (options.load_best_model_at_end && training.place.is_first()) keep_best_of(options, {training.saved_best});
}

/// Sets the method of `options`, which leave it open, and the place that follows from it. Collective.
void settle_method(FineTuneOptions& options, const DecoderConfig& config, Place& place, const train::Launch& launch,
                   const train::World& ranks) {
  const auto choice = choose_method(options, config, ranks, launch.local_world_size, place.device.device);
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
  require_same_job(world->world, job_of(options, data));

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
