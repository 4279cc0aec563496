// SPDX-License-Identifier: Apache-2.0
// The loop, read from the bottom: `train_to_the_end` is the story.
// See loop.hpp. Ranks exchange three numbers before a step (what it is divided by) and its sums after it.
// A rank that has fewer micro-batches than another at an epoch's end runs an empty one, whose gradients are zero, so
// that all make the same collectives.
#include "trainer/loop/loop.hpp"

#include "trainer/loop/samples.hpp"
#include "trainer/own_bundle.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostMetrics = 10;

/// One micro-batch on the host; without rows it counts for nothing.
struct MicroBatch {
  ExampleRows rows;
  Batch batch;
};

MicroBatch micro_batch(const TokenView& file, ExampleRows rows, const BatchOptions& options) {
  auto batch = rows.empty() ? empty_batch(file, kEmptyTokens) : make_batch(file, rows, options);
  return {std::move(rows), std::move(batch)};
}

std::int64_t tokens_of(const Batch& batch) {
  return batch.sequence.ge(0).sum().item<std::int64_t>();
}

/// The sum over all ranks of numbers that each has on its host.
std::vector<std::int64_t> sum_over_ranks(train::Groups& world, const std::vector<std::int64_t>& mine) {
  const auto own = torch::tensor(mine, torch::kInt64);
  auto all = own.repeat({world.world.size()});
  world.world.all_gather(all, own, "sizes of the step").wait();
  const auto sums = all.view({world.world.size(), -1}).sum(0).contiguous();
  return {sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + sums.numel()};
}

/// Sums of a step on the device: the loss, then each metric and its count.
class StepSums {
 public:
  explicit StepSums(at::Device device)
      : sums_(torch::zeros({1 + 2 * static_cast<std::int64_t>(kMostMetrics)}, at::dtype(at::kDouble).device(device))) {}

  void add(const Objective& objective) {
    TORCH_CHECK(objective.metrics.size() <= kMostMetrics, "an objective has ", objective.metrics.size(),
                " metrics; the loop sums up ", kMostMetrics);
    sums_[0] += objective.sum.detach();
    names_.resize(objective.metrics.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto at = static_cast<std::int64_t>(1 + 2 * i);
      names_[i] = objective.metrics[i].name;
      sums_[at] += objective.metrics[i].sum;
      sums_[at + 1] += static_cast<double>(objective.metrics[i].count);
    }
  }

  /// Over all ranks; waits for the device.
  void reduce(train::Groups& world) {
    world.world.all_reduce(sums_).wait();
    sums_ = sums_.cpu();
  }

  double loss() const { return sums_[0].item<double>(); }

  nlohmann::ordered_json metrics() const {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto at = static_cast<std::int64_t>(1 + 2 * i);
      const auto count = sums_[at + 1].item<double>();
      if (count > 0) json[names_[i]] = sums_[at].item<double>() / count;
    }
    return json;
  }

 private:
  at::Tensor sums_;
  std::vector<std::string> names_;
};

struct StepOutcome {
  StepResult result;
  double rate = 0;
  nlohmann::ordered_json metrics;
};

/// This rank's micro-batches of the next step: as many as the rank with the most has.
std::vector<MicroBatch> next_batches(Training& training) {
  auto rows = training.sampler.next();
  auto options = training.goal->batch_options();
  if (training.options.packing) options.pad_to = row_length(training.options, training.model->config());
  rows.micro_batches.resize(static_cast<std::size_t>(rows.most_micro_batches));
  std::vector<MicroBatch> batches;
  for (auto& each : rows.micro_batches) {
    batches.push_back(micro_batch(training.data.view(), std::move(each), options));
  }
  return batches;
}

/// What is differentiated for one micro-batch: gradients are divided by the number of ranks later.
at::Tensor loss_of(Training& training, const MicroBatch& micro, double weight, double micro_batches, StepSums& sums) {
  const auto batch = to_device(micro.batch, training.place.device.device);
  const auto ranks = static_cast<double>(training.place.world_size);
  if (micro.rows.empty()) {
    const auto [values, router_loss] = training.model(batch.tokens);
    auto nothing = values.sum() * 0;
    return router_loss.defined() ? nothing + router_loss * 0 : nothing;
  }
  const auto [objective, router_loss] = training.goal->of(training.model, batch, micro.rows);
  sums.add(objective);
  auto loss = objective.sum * (ranks / weight);
  const auto coefficient = training.options.router_aux_loss_coef;
  if (router_loss.defined() && coefficient > 0) loss = loss + router_loss * (coefficient * ranks / micro_batches);
  return loss;
}

/// Clips and steps; the norm before clipping.
double step_optimizer(Training& training) {
  auto [options, parallel, scaler] = std::tie(training.options, training.parallel, training.scaler);
  scaler.unscale_(training.optimizer);
  const auto norm = options.max_grad_norm > 0 ? train::clip_grad_norm_(parallel, options.max_grad_norm).item<double>()
                                              : train::gradient_norm(parallel);
  if (!scaler.step(training.optimizer)) ++training.position.skipped;
  scaler.update();
  return norm;
}

StepOutcome train_step(Training& training) {
  const auto start = Clock::now();
  auto& position = training.position;
  training.world.set_step(position.step + 1);
  training.optimizer.zero_grad();
  const auto batches = next_batches(training);
  std::vector<ExampleRows> rows;
  for (const auto& each : batches) rows.push_back(each.rows);
  training.goal->begin(training.model, {training.data.view(), rows, training.place.device.device, training.world});
  std::int64_t mine = 0, with_rows = 0, tokens = 0;
  for (const auto& each : batches) {
    if (each.rows.empty()) continue;
    mine += training.goal->weight(each.batch);
    tokens += tokens_of(each.batch);
    ++with_rows;
  }
  const auto all = sum_over_ranks(training.world, {mine, with_rows, tokens});
  const auto weight = static_cast<double>(std::max<std::int64_t>(1, all[0]));
  StepSums sums(training.place.device.device);
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    training.parallel.set_micro_batch(static_cast<std::int64_t>(micro), static_cast<std::int64_t>(batches.size()));
    const auto loss = loss_of(training, batches[micro], weight, static_cast<double>(all[1]), sums);
    training.scaler.scale(loss).backward();
  }
  training.world.set_step(position.step + 1);  // the core counts the steps of this process, which may have resumed
  StepOutcome outcome{.rate = training.schedule.rate(position.step)};
  set_rate(training.optimizer, training.groups, optimizer_options(training.options), outcome.rate);
  outcome.result.gradient_norm = step_optimizer(training);
  sums.reduce(training.world);
  outcome.metrics = sums.metrics();
  outcome.result.loss = sums.loss() / weight;
  TORCH_CHECK(std::isfinite(outcome.result.loss), "the loss is ", outcome.result.loss, "; try a lower learning_rate");
  outcome.result.tokens_per_second =
      static_cast<double>(all[2]) / std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

/// What of `strategy` is due after a step: every `every` steps, at the end of an epoch, and after the last.
bool is_due(const std::string& strategy, std::int64_t every, std::int64_t step, bool epoch_ended, bool last) {
  if (strategy == "no") return false;
  return last || (strategy == "steps" ? step % every == 0 : epoch_ended);
}

void save(Training& training, const std::filesystem::path& folder, std::int64_t keep) {
  training.position.sampler = training.sampler.state();
  training.position.scaler = training.scaler.state();
  const auto rows = rows_of_step(training.options, training.place.world_size);
  auto state = training_state(training.options, rows, training.position);
  if (training.place.is_first()) state.notes["bundle"] = own_bundle().dump();  // it writes the index
  train::save_checkpoint(folder, *training.model, training.parallel, &training.optimizer, state,
                         {.keep_last = keep, .frozen = !training.options.has_adapters()});
}

/// Saves what a run goes on from, which counts on the best evaluation so far.
bool save_to_go_on(Training& training) {
  const auto& options = training.options;
  save(training, checkpoint_folder(options), options.save_total_limit);
  const auto best = training.position.best();
  if (!options.load_best_model_at_end || !best) return true;
  training.saved_best = best->step;
  if (training.place.is_first()) keep_best_of(options, {best->step});
  return true;
}

/// Evaluates, keeps the best and says whether to go on.
void evaluate_and_judge(Training& training, StepLog* log) {
  auto& position = training.position;
  const auto [loss, metrics] = evaluate(training, *training.evaluation, *training.evaluation_goal);
  position.evaluations.push_back({position.step, loss, metrics});
  nlohmann::ordered_json line{{"step", position.step}, {"eval_loss", loss}};
  for (const auto& [name, value] : metrics.items()) line["eval_" + name] = value;
  if (log) log->write(line);
  if (training.place.is_first()) std::cerr << "step " << position.step << "  eval loss " << loss << '\n';
  const auto& options = training.options;
  const auto best = position.best();
  const bool is_best = best && best->step == position.step;
  if (is_best && options.load_best_model_at_end) {
    save(training, best_folder(options), 0);
    if (training.place.is_first()) keep_best_of(options, {position.step, training.saved_best});
  }
  const auto patience = options.early_stop_interval;
  position.stopped = patience > 0 && position.without_better() >= patience;
}

/// What comes after step `position.step`.
void finish_step(Training& training, Monitor& monitor, StepLog* log) {
  auto [options, position] = std::tie(training.options, training.position);
  const auto state = training.sampler.state();
  const bool epoch_ended = state.row == training.sampler.rows(state.epoch);
  const bool last = position.step == training.steps;
  const bool evaluates =
      training.evaluation && is_due(options.eval_strategy, options.eval_steps, position.step, epoch_ended, last);
  if (evaluates) evaluate_and_judge(training, log);
  const bool saves =
      is_due(options.save_strategy, options.save_steps, position.step, epoch_ended, last || position.stopped);
  const bool samples = training.evaluation ? evaluates : saves || last;
  if (options.sample_prompts > 0 && samples) write_samples(training);
  monitor.checkpoint(position.step, [&] { return saves && save_to_go_on(training); });
}

void log_step(Training& training, StepLog& log, const StepOutcome& outcome) {
  const auto number = training.position.step;
  if (number % training.options.logging_steps != 0 && number != 1 && number != training.steps) return;
  nlohmann::ordered_json more{{"learning_rate", outcome.rate}, {"epoch", training.sampler.epochs_done()}};
  more.update(outcome.metrics);
  log.add(number, outcome.result, more);
}

}  // namespace

OptimizerOptions optimizer_options(const FineTuneOptions& options) {
  return {.learning_rate = options.peak_rate(),
          .weight_decay = options.weight_decay,
          .beta1 = options.adam_beta1,
          .beta2 = options.adam_beta2,
          .epsilon = options.adam_epsilon,
          .lora_b_ratio = options.lorap_lr_ratio};
}

std::int64_t rows_of_step(const FineTuneOptions& options, std::int64_t world_size) {
  return options.per_device_train_batch_size * options.micro_batches(world_size) * world_size;
}

std::pair<double, nlohmann::ordered_json> evaluate(Training& training, const TokenFile& data, Goal& goal) {
  at::NoGradGuard no_grad;
  training.model->eval();
  const auto& place = training.place;
  StepSums sums(place.device.device);
  std::int64_t weight = 0;
  auto all_rows = rows_in_order(data.view(), training.options.per_device_eval_batch_size, place.rank, place.world_size);
  goal.begin(training.model, {data.view(), all_rows, place.device.device, training.world});
  for (auto& rows : all_rows) {
    const auto micro = micro_batch(data.view(), std::move(rows), goal.batch_options());
    const auto batch = to_device(micro.batch, place.device.device);
    if (micro.rows.empty()) {
      training.model(batch.tokens);
      continue;
    }
    weight += goal.weight(micro.batch);
    sums.add(goal.of(training.model, batch, micro.rows).objective);
  }
  training.model->train();
  const auto all = sum_over_ranks(training.world, {weight});
  sums.reduce(training.world);
  return {sums.loss() / static_cast<double>(std::max<std::int64_t>(1, all[0])), sums.metrics()};
}

void train_to_the_end(Training& training, Monitor& monitor) {
  auto& position = training.position;
  std::optional<StepLog> log;
  if (training.place.is_first()) {
    log.emplace(training.options.out, training.steps, position.step);
    if (position.step == 0) std::filesystem::remove(std::filesystem::path(training.options.out) / "samples.jsonl");
  }
  training.model->train();
  while (position.step < training.steps && !position.stopped) {
    const auto number = position.step + 1;
    try {
      monitor.begin_step();
      const auto outcome = train_step(training);
      monitor.end_step(number, outcome.result);
      position.losses.push_back(outcome.result.loss);
      position.step = number;
      if (log) log_step(training, *log, outcome);
      finish_step(training, monitor, log ? &*log : nullptr);
    } catch (c10::Error& error) {
      error.add_context(c10::str("in step ", number, " of ", training.steps));
      throw;
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "in step ", number, " of ", training.steps, ": ", error.what());
    }
  }
}

}  // namespace sealift::trainer
