// SPDX-License-Identifier: Apache-2.0
// The loop, read from the bottom: `train_to_the_end` is the story.
// See loop.hpp.
// What a job draws and sums is its own; when the engine is told of it is not, so that all jobs use the engine alike.
#include "trainer/loop/loop.hpp"

#include "trainer/failure.hpp"
#include "trainer/loop/not_finite.hpp"
#include "trainer/loop/saving.hpp"

#include <cmath>

namespace sealift::trainer {
namespace {

using Clock = std::chrono::steady_clock;

/// Of so many steps in a row the optimizer takes none before the run ends: it learns nothing any more.
constexpr std::int64_t kMostSkipped = 10;
/// So often the run goes back to one checkpoint.
constexpr std::int64_t kMostRolledBack = 3;

double seconds_after(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A step and what the loop does next.
struct Taken {
  StepOutcome outcome;
  EndWishes ends;
  std::string not_finite;  ///< what was, and whose; empty: the optimizer was asked to take the step
  bool overflowed;         ///< under the loss scale, so the optimizer did not take the step
};

/// The norm of the gradients, which are clipped to the job's.
double clip(Training& training) {
  auto& parallel = training.parallel;
  return training.options.clip > 0 ? train::clip_grad_norm_(parallel, training.options.clip).item<double>()
                                   : train::gradient_norm(parallel);
}

/// Why the optimizer must not take a step with these; empty: it may. With a scaler an overflow of gradients is its own
/// matter.
std::string not_finite(double loss, double norm, bool scales) {
  if (!std::isfinite(loss)) return c10::str("the loss is ", loss);
  return scales || std::isfinite(norm) ? "" : c10::str("the norm of the gradients is ", norm);
}

Taken train_step(Training& training, Job& job, const Endings& endings) {
  const auto start = Clock::now();
  const auto number = training.position.step + 1;
  auto [parallel, scaler] = std::tie(training.parallel, training.scaler);
  training.world.set_step(number);
  training.optimizer.zero_grad();
  const auto micro_batches = job.begin_step();
  const auto random = random_states(parallel);
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
    parallel.set_micro_batch(micro, micro_batches);
    const auto loss = job.loss_of(micro);
    scaler.scale(loss).backward();
    job.end_micro_batch();
  }
  training.world.set_step(number);  // the core counts the steps of this process, which may have resumed
  Taken taken{
      .outcome = {.result = {}, .rate = job.rate(), .metrics = {}}, .ends = {}, .not_finite = {}, .overflowed = false};
  auto& outcome = taken.outcome;
  set_rate(training.optimizer, training.groups, training.options.optimizer, outcome.rate);
  auto sums = job.end_step(endings.mine());
  scaler.unscale_(training.optimizer);
  outcome.result.gradient_norm = clip(training);
  taken.not_finite = not_finite(sums.loss, outcome.result.gradient_norm, training.options.scales);
  if (!taken.not_finite.empty()) {
    taken.not_finite += "; " + whose_it_was(training, job, micro_batches, random);
    ++training.position.skipped;
  } else if (!scaler.step(training.optimizer)) {
    ++training.position.skipped;
    taken.overflowed = true;
  }
  scaler.update();
  taken.ends = sums.ends;
  outcome.result.loss = sums.loss;
  outcome.metrics = std::move(sums.metrics);
  outcome.result.tokens_per_second = static_cast<double>(sums.tokens) / seconds_after(start);
  return taken;
}

/// The loop's own memory of what it goes through.
struct Progress {
  Saving saving;
  Endings endings;
  std::int64_t skipped_in_a_row = 0;
};

void say_first(const Training& training, const std::string& line) {
  if (training.place.is_first()) say(line);
}

/// Ends the run, or says that the step was not taken.
void skip(Training& training, Progress& progress, const std::string& what) {
  const auto next = "; nothing of it was learned; try a lower learning_rate, or look at those rows";
  TORCH_CHECK(training.options.on_nonfinite != OnNonFinite::Stop, what, next,
              ", or go on without them with on_nonfinite = skip or rollback");
  TORCH_CHECK(++progress.skipped_in_a_row < kMostSkipped, what, next, "; that was the ", kMostSkipped,
              "th such step in a row, so on_nonfinite = skip learns nothing");
  say_first(training, what + "; on_nonfinite is skip: the step is left out");
}

/// Goes back to the last checkpoint, or throws.
void roll_back(Training& training, Job& job, const std::string& what) {
  const auto from = training.position.step + 1;
  TORCH_CHECK(job.roll_back(), what, "; on_nonfinite is rollback, but there is no checkpoint yet to go back to; save ",
              "earlier, or try a lower learning_rate");
  const auto to = training.position.step;
  training.rolled_back.push_back({from, to});
  const auto times = std::count_if(training.rolled_back.begin(), training.rolled_back.end(),
                                   [&](const auto& each) { return each.to == to; });
  TORCH_CHECK(times <= kMostRolledBack, what, "; on_nonfinite is rollback, and it went back to step ", to, " ",
              kMostRolledBack, " times already; try a lower learning_rate");
  say_first(training, what + c10::str("; on_nonfinite is rollback: going on from the checkpoint of step ", to,
                                      ", with the rows after that step"));
}

/// Saves what is due, and where the run is to end early what it has; says so.
void save(Training& training, Job& job, Monitor& monitor, Progress& progress, const EndWishes& ends) {
  auto& position = training.position;
  const auto number = position.step;
  const auto start = Clock::now();
  const bool is_over = number == training.options.steps || position.stopped;
  const bool is_due = job.save_is_due() || (ends.any() && !is_over && job.saves());
  monitor.checkpoint(number, [&] { return progress.saving.after_step(number, is_due, [&] { job.save(); }); });
  progress.endings.took_save(seconds_after(start));
  training.saved_after = progress.saving.last();
  training.failed_saves = progress.saving.failed();
  if (is_over || !ends.any()) return;
  training.ended_by = ends;
  const auto why = ends.told > 0 ? std::string("told to end by SIGTERM")
                                 : c10::str("the time limit of ", training.options.time_limit, " s is reached");
  const auto last = progress.saving.last();
  const auto what =
      last == number ? c10::str("its checkpoint is saved, and the same command goes on from there")
      : last > 0     ? c10::str("the last checkpoint is that of step ", last, ", from which the same command goes on")
                     : std::string("it has no checkpoint, so the same command begins anew");
  say_first(training,
            c10::str(why, ": not finished, ended after step ", number, " of ", training.options.steps, "; ", what));
}

/// One step and all that follows from it.
void go_on(Training& training, Job& job, Monitor& monitor, Progress& progress, StepLog* log) {
  auto& position = training.position;
  const auto number = position.step + 1;
  const auto start = Clock::now();
  monitor.begin_step();
  const auto [outcome, ends, bad, overflowed] = train_step(training, job, progress.endings);
  if (overflowed) {
    say_first(training,
              c10::str("step ", number, ": gradients overflowed under fp16's loss scale (grad_norm ",
                       outcome.result.gradient_norm, "): it is skipped, the scale is halved, and the schedule ",
                       "does not move; skipped so far: ", position.skipped));
  }
  if (!bad.empty()) {
    const auto what = c10::str("step ", number, ": ", bad);
    if (training.options.on_nonfinite == OnNonFinite::Rollback) return roll_back(training, job, what);
    skip(training, progress, what);
  } else {
    progress.skipped_in_a_row = 0;
  }
  monitor.end_step(number, outcome.result);
  position.losses.push_back(outcome.result.loss);
  position.step = number;
  // Logged first, or a run that is killed after saving goes on without this line.
  const auto more = job.more_of(outcome);
  if (log && more) log->add(number, outcome.result, *more);
  job.after_step(log);
  progress.endings.took_step(seconds_after(start));
  save(training, job, monitor, progress, ends);
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

void add_ending(const Training& training, nlohmann::ordered_json& result) {
  result["finished"] = !training.ended_by;
  if (training.ended_by) result["ended_by"] = training.ended_by->cause();
  result["failed_saves"] = training.failed_saves;
  result["rolled_back"] = nlohmann::ordered_json::array();
  for (const auto& each : training.rolled_back) {
    result["rolled_back"].push_back({{"from", each.from}, {"to", each.to}});
  }
}

void train_to_the_end(Training& training, Job& job, Monitor& monitor) {
  auto& position = training.position;
  training.resumed_after = position.step;
  training.saved_after = position.step;
  std::optional<StepLog> log;
  if (training.place.is_first()) log.emplace(training.options.out, training.options.steps, position.step, job.beside());
  if (log) log->on_line([&monitor](const auto& line) { monitor.logged(line); });
  Progress progress{.saving = Saving(training.place.is_first(), position.step),
                    .endings = Endings(training.options.time_limit)};
  while (position.step < training.options.steps && !position.stopped && !training.ended_by) {
    const auto number = position.step + 1;
    try {
      go_on(training, job, monitor, progress, log ? &*log : nullptr);
    } catch (c10::Error& error) {
      error.add_context(c10::str("in step ", number, " of ", training.options.steps));
      throw;
    } catch (const std::exception& error) {
      TORCH_CHECK(false, "in step ", number, " of ", training.options.steps, ": ", error.what());
    }
  }
}

}  // namespace sealift::trainer
