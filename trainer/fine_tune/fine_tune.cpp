// SPDX-License-Identifier: Apache-2.0
// Fine-tuning, read from the bottom: `fine_tune` is the story, each step of it a function above.
// See fine_tune.hpp. The loop is loop/loop.hpp's, which `run` has too; only `adapt` tells what is trained.
// The model is built without memory; each rank reads its own ranges of the files.
#include "trainer/fine_tune/fine_tune.hpp"

#include "trainer/fine_tune/best_model.hpp"
#include "trainer/fine_tune/cards.hpp"
#include "trainer/fine_tune/checkpoints.hpp"
#include "trainer/fine_tune/conditions.hpp"
#include "trainer/fine_tune/fine_tune_job.hpp"
#include "trainer/fine_tune/fine_tune_result.hpp"
#include "trainer/fine_tune/goals.hpp"
#include "trainer/fine_tune/job_model.hpp"
#include "trainer/fine_tune/made_tokens.hpp"
#include "trainer/fine_tune/method_choice.hpp"
#include "trainer/fine_tune/own_kernels.hpp"
#include "trainer/fine_tune/planned_job.hpp"
#include "trainer/fine_tune/training_data.hpp"
#include "trainer/fine_tune/untrained_rows.hpp"
#include "trainer/loop/saving.hpp"
#include "trainer/models/attention_check.hpp"
#include "trainer/models/beyond_config.hpp"
#include "trainer/models/moe.hpp"
#include "trainer/ranks/locked_folder.hpp"
#include "trainer/ranks/same_job.hpp"
#include "trainer/tuning/in_vllm.hpp"
#include "trainer/tuning/qlora.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

OnNonFinite on_nonfinite_of(const FineTuneOptions& options) {
  if (options.on_nonfinite == "skip") return OnNonFinite::Skip;
  return options.on_nonfinite == "rollback" ? OnNonFinite::Rollback : OnNonFinite::Stop;
}

/// What the loop is told.
LoopOptions loop_of(const FineTuneOptions& options, std::int64_t steps) {
  return {.optimizer = {.learning_rate = options.peak_rate(),
                        .weight_decay = options.weight_decay,
                        .beta1 = options.adam_beta1,
                        .beta2 = options.adam_beta2,
                        .epsilon = options.adam_epsilon,
                        .lora_b_ratio = options.lorap_lr_ratio},
          .clip = options.max_grad_norm,
          .scales = options.precision == "fp16",
          .out = options.out,
          .steps = steps,
          .on_nonfinite = on_nonfinite_of(options),
          .time_limit = options.time_limit};
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
  auto job = settings_of_job(
      options, fine_tune_settings(),
      {"model", "dataset", "val_dataset", "adapters", "ref_model", "ref_adapters", "output_dir",
       "resume_from_checkpoint", "device", "threads", "timeout_seconds", "time_limit", "trace", "tensorboard"});
  job["dataset"] = data.training->header().content_sha256;
  if (data.evaluation) job["val_dataset"] = (*data.evaluation)->header().content_sha256;
  return job;
}

void say_what_is_done(const FineTuning& tuning, const ModelSize& size) {
  const auto [options, training] = std::tie(tuning.options, tuning.training);
  if (!training.place.is_first()) return;
  std::string keys, templates;
  for (const auto& key : options.ignored) {
    auto& list = key == "template" || key.ends_with("chat_template") ? templates : keys;
    list += (list.empty() ? "" : ", ") + key;
  }
  if (!keys.empty()) std::cerr << "note: ignored, since they change no number here: " << keys << '\n';
  if (!templates.empty()) {
    std::cerr << "note: the model's own chat template is used, which may differ from what the job names by "
              << templates << '\n';
  }
  std::cerr << "training " << size.trainable << " of " << size.parameters << " parameters for "
            << training.options.steps << " steps of " << rows_of_step(options, training.place.world_size) << " rows\n";
  if (options.packing && options.max_length == 0) {
    std::cerr << "note: packing without max_length: rows of " << tuning.sampler.row_length() << " tokens, while "
              << "max_position_embeddings is " << tuning.model->config().max_positions
              << "; set max_length for other rows\n";
  }
  if (training.position.step > 0) std::cerr << "resuming after step " << training.position.step << '\n';
}

/// What the result may not be, said before the hours that it takes.
void say_what_to_expect(const FineTuning& tuning, const FirstValues& values) {
  const auto& options = tuning.options;
  if (!tuning.training.place.is_first()) return;
  const auto beyond = beyond_config(options.model, tuning.model->config());
  if (!beyond.empty()) std::cerr << beyond << '\n';
  if (!options.has_adapters()) return;
  const auto lora = lora_of(options);
  for (const auto& line : options.merge_lora ? std::vector<std::string>() : in_vllm(lora)) std::cerr << line << '\n';
  const auto line = untrained_rows(tuning.data, options.model, tuning.model->config(), lora, *values.base);
  if (!line.empty()) std::cerr << line << '\n';
}

/// Goes on from `checkpoint`. Collective.
void resume_from(FineTuning& tuning, const std::filesystem::path& checkpoint) {
  auto [options, training] = std::tie(tuning.options, tuning.training);
  std::vector<std::string> changed;
  const auto look = [&](const train::TrainingState& state) {
    require_same_cut(state.notes, options, *tuning.goal, checkpoint.string());
    changed = changed_conditions(state.notes, options, training.place, training.options.steps, state.step);
  };
  training.position = load_position(checkpoint, options, rows_of_step(options, training.place.world_size),
                                    *tuning.model, training.parallel, training.optimizer, look);
  for (const auto& line : changed) {
    if (training.place.is_first()) std::cerr << line << '\n';
  }
  tuning.sampler.resume(training.position.sampler);
  if (training.options.scales) training.scaler.load_state(training.position.scaler);
  const auto patience = options.early_stop_interval;
  training.position.stopped = patience > 0 && training.position.without_better() >= patience;
}

/// Goes on from a checkpoint, if there is one to go on from, and leaves in OUT what it counts on. Collective.
void resume(FineTuning& tuning) {
  auto [options, training] = std::tie(tuning.options, tuning.training);
  go_on_from_the_last_good(checkpoints_to_resume(options), checkpoint_folder(options), training.world.world,
                           [&](const auto& checkpoint) { resume_from(tuning, checkpoint); });
  refuse_later_checkpoints(options, training.position.step);
  tuning.saved_best = best_to_begin_with(options, training.position);
  training.world.world.barrier();  // all have looked
  if (!training.place.is_first()) return;
  if (options.load_best_model_at_end) keep_best_of(options, {tuning.saved_best});
  if (training.position.step == 0) std::filesystem::remove(std::filesystem::path(options.out) / "samples.jsonl");
}

/// Of its checkpoints, and beside them at most two of the best model. Collective.
void ask_for_room(FineTuning& tuning) {
  auto [options, training] = std::tie(tuning.options, tuning.training);
  if (options.save_strategy == "no") return;
  const auto left = training.options.steps - training.position.step;
  const auto saves = options.save_strategy == "steps"
                         ? training.options.steps / options.save_steps - training.position.step / options.save_steps +
                               (training.options.steps % options.save_steps == 0 ? 0 : 1)
                         : static_cast<std::int64_t>(std::ceil(options.num_train_epochs));
  trainer::ask_for_room(training.world.world,
                        {.folder = checkpoint_folder(options),
                         .bytes = checkpoint_bytes(training.parallel, !options.has_adapters()),
                         .kept = options.save_total_limit,
                         .saves = std::min(left, saves),
                         .beside = options.load_best_model_at_end && tuning.evaluation ? 2 : 0},
                        training.position.step > 0);
}

}  // namespace

nlohmann::ordered_json describe(const FineTuneOptions& options, std::int64_t world_size) {
  const auto config = config_of(options);
  if (options.dataset.size() > 1) {
    throw std::invalid_argument("--dry-run looks into one token file, and the job has " +
                                std::to_string(options.dataset.size()) + " files; tokenize them into one first");
  }
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
  const auto config = config_of(given);
  const auto rank = rank_of(given, launch);
  std::optional<train::World> ranks;
  if (leaves_method_open(given)) ranks = find_ranks(rank, given, launch);
  const auto options = ranks ? with_method(given, config, rank, *ranks, launch) : given;
  const auto place = place_in_world(rank, policy_of(options, launch.world_size));
  const auto micro_batches = options.micro_batches(place.world_size);
  Monitor monitor(options, place.watched(micro_batches));
  if (!ranks) ranks = find_ranks(rank, options, launch);  // what cannot be was refused before
  world = make_groups(place, *ranks, {kExpertAxis, options.expert_model_parallel_size});
  const LockedFolder lock(options.out, world->world);
  monitor.started("connect");
  auto data = data_of(options, config, launch, *world);
  require_same_job(world->world, job_of(options, data));
  nlohmann::ordered_json planned;
  if (place.is_first())
    planned = planned_cost(options, config, place, launch.local_world_size,
                           [&] { return longest_row(data.training, options, config); });

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
  check_attention(place, config,
                  attended_rows(data.training, data.evaluation ? &*data.evaluation : nullptr, options, config));
  const auto no_kernels = start_own_kernels(place, options.own_kernels);
  monitor.started("parallelize");

  auto goal = make_goal(options, config);
  auto evaluation_goal = data.evaluation ? make_goal(options, config) : nullptr;
  std::vector<GoalOf> goals{{goal.get(), &data.training}};
  if (evaluation_goal) goals.push_back({evaluation_goal.get(), &*data.evaluation});
  ask_reference(goals, model, options, place, *world);
  auto sampler = make_sampler(data.training, options, config, place.rank, place.world_size);
  const auto loop = loop_of(options, steps_of(sampler, options));
  auto groups = decay_groups(parallel.named_shards(), loop.optimizer);
  FineTuning tuning{.options = options,
                    .model = model,
                    .training = make_training(place, *world, std::move(parallel), std::move(groups), loop),
                    .schedule = schedule_of(options, loop.steps),
                    .goal = std::move(goal),
                    .data = std::move(data.training),
                    .sampler = std::move(sampler),
                    .evaluation = std::move(data.evaluation),
                    .evaluation_goal = std::move(evaluation_goal)};
  resume(tuning);
  ask_for_room(tuning);
  monitor.started("load");
  say_what_is_done(tuning, size);
  say_what_to_expect(tuning, values);

  *world->traffic = {};
  const auto start = Clock::now();
  train_to_the_end(tuning, monitor);
  const auto seconds = std::chrono::duration<double>(Clock::now() - start).count();
  take_best(tuning);
  const auto saved = save_result(tuning, values);
  auto result = report(tuning, size, saved, seconds);
  result["planned"] = planned;
  result["own_kernels"] = own_kernels_that_ran(no_kernels);
  write_cards(tuning, result);
  write_result(result, monitor, place, options, *world);
  return result;
}

}  // namespace sealift::trainer
