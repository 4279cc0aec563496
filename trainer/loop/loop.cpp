// SPDX-License-Identifier: Apache-2.0
// The loop, read from the bottom: `train_to_the_end` is the story.
// See loop.hpp.
// What a job draws and sums is its own; when the engine is told of it is not, so that all jobs use the engine alike.
#include "trainer/loop/loop.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// Clips and steps; the norm before clipping.
double step_optimizer(Training& training) {
  auto [parallel, scaler] = std::tie(training.parallel, training.scaler);
  scaler.unscale_(training.optimizer);
  const auto norm = training.options.clip > 0 ? train::clip_grad_norm_(parallel, training.options.clip).item<double>()
                                              : train::gradient_norm(parallel);
  if (!scaler.step(training.optimizer)) ++training.position.skipped;
  scaler.update();
  return norm;
}

StepOutcome train_step(Training& training, Job& job) {
  const auto start = Clock::now();
  const auto number = training.position.step + 1;
  training.world.set_step(number);
  training.optimizer.zero_grad();
  const auto micro_batches = job.begin_step();
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
    training.parallel.set_micro_batch(micro, micro_batches);
    const auto loss = job.loss_of(micro);
    training.scaler.scale(loss).backward();
    job.end_micro_batch();
  }
  training.world.set_step(number);  // the core counts the steps of this process, which may have resumed
  StepOutcome outcome{.result = {}, .rate = job.rate(), .metrics = {}};
  set_rate(training.optimizer, training.groups, training.options.optimizer, outcome.rate);
  outcome.result.gradient_norm = step_optimizer(training);
  auto sums = job.end_step();
  TORCH_CHECK(std::isfinite(sums.loss), "the loss is ", sums.loss, "; try a lower learning_rate");
  outcome.result.loss = sums.loss;
  outcome.metrics = std::move(sums.metrics);
  outcome.result.tokens_per_second =
      static_cast<double>(sums.tokens) / std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

}  // namespace

Training make_training(const Place& place, train::Groups& world, train::Parallel parallel,
                       std::vector<ShardGroup> groups, const LoopOptions& options) {
  const auto moments =
      parallel.policy().offload.optimizer_state ? train::Moments::OnHost : train::Moments::WithParameter;
  auto optimizer = make_optimizer(groups, options.optimizer, moments);
  parallel.check_optimizer(optimizer);
  train::GradScaler scaler(parallel, {.enabled = options.scales});
  return {.place = place,
          .world = world,
          .options = options,
          .parallel = std::move(parallel),
          .groups = std::move(groups),
          .optimizer = std::move(optimizer),
          .scaler = std::move(scaler)};
}

void train_to_the_end(Training& training, Job& job, Monitor& monitor) {
  auto& position = training.position;
  training.resumed_after = position.step;
  std::optional<StepLog> log;
  if (training.place.is_first()) log.emplace(training.options.out, training.options.steps, position.step, job.beside());
  while (position.step < training.options.steps && !position.stopped) {
    const auto number = position.step + 1;
    try {
      monitor.begin_step();
      const auto outcome = train_step(training, job);
      monitor.end_step(number, outcome.result);
      position.losses.push_back(outcome.result.loss);
      position.step = number;
      // Logged first, or a run that is killed after saving goes on without this line.
      const auto more = job.more_of(outcome);
      if (log && more) log->add(number, outcome.result, *more);
      job.after_step(log ? &*log : nullptr);
      monitor.checkpoint(number, [&] { return job.save_if_due(); });
    } catch (c10::Error& error) {
      error.add_context(c10::str("in step ", number, " of ", training.options.steps));
      throw;
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "in step ", number, " of ", training.options.steps, ": ", error.what());
    }
  }
}

}  // namespace sealift::trainer
