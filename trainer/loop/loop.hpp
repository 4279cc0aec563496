// SPDX-License-Identifier: Apache-2.0
// The training loop, one for `run` and for fine-tuning: steps, each logged, timed and, where it is due, saved.
// Between a story (verification/run, fine_tune/fine_tune), which builds the parts, and its job, which knows the model
// and the data.
// Only the policy tells one process, ddp, fsdp and hsdp apart, and only what a Job says tells one job from another.
// Mirrored by trainer/rehearse/rehearse.cpp (a step without its values): change both.
#pragma once

#include "trainer/loop/decay_groups.hpp"
#include "trainer/loop/position.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/ranks/place.hpp"

namespace sealift::trainer {

/// What a job says of its loop before it begins.
struct LoopOptions {
  OptimizerOptions optimizer;
  double clip = 0;         ///< largest norm of the gradients; 0: no clipping
  bool scales = false;     ///< the loss, for fp16
  std::string out;         ///< folder of log.jsonl
  std::int64_t steps = 0;  ///< of the whole job
};

/// What every job trains with, and where it stands.
struct Training {
  const Place& place;
  train::Groups& world;
  LoopOptions options;
  train::Parallel parallel;
  std::vector<ShardGroup> groups;
  train::FusedAdamW optimizer;  ///< of `groups`
  train::GradScaler scaler;
  Position position = {};
  std::int64_t resumed_after = 0;  ///< a step; 0: it began anew
};

/// A training before its first step: an optimizer over `groups`, which hold every shard of `parallel` that is trained.
Training make_training(const Place& place, train::Groups& world, train::Parallel parallel,
                       std::vector<ShardGroup> groups, const LoopOptions& options);

/// Of a step, over all ranks and micro-batches.
struct StepSums {
  double loss = 0;  ///< the mean
  std::int64_t tokens = 0;
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();  ///< of the objective, by name
};

/// What a step came to.
struct StepOutcome {
  StepResult result;
  double rate = 0;  ///< that it was taken with
  nlohmann::ordered_json metrics;
};

/// What the loop asks of a job. Until the position is moved on, the step is the one after `Training::position`; all
/// ranks ask alike, and each call but `rate`, `beside` and `more_of` may be collective.
class Job {
 public:
  virtual ~Job() = default;

  /// Draws this rank's micro-batches of the step; how many there are.
  virtual std::int64_t begin_step() = 0;

  /// What is differentiated for micro-batch `number`. Gradients are divided by the number of ranks later.
  virtual at::Tensor loss_of(std::int64_t number) = 0;

  /// After its backward.
  virtual void end_micro_batch() {}

  /// After the optimizer's step. Waits for the device.
  virtual StepSums end_step() = 0;

  /// The learning rate of the step.
  virtual double rate() const = 0;

  /// What a progress line says after the loss.
  virtual std::string beside() const { return ""; }

  /// Further keys of the line in log.jsonl of the step that is done; nothing where it has no line.
  virtual std::optional<nlohmann::ordered_json> more_of(const StepOutcome& /*outcome*/) const {
    return nlohmann::ordered_json::object();
  }

  /// What is done after a step that is logged, before it is saved. `log`: of rank 0, else null.
  virtual void after_step(StepLog* /*log*/) {}

  /// Saves a checkpoint where one is due after the step that is done; whether it did.
  virtual bool save_if_due() = 0;
};

/// Trains from where `training` stands to its end; an error names its step. Collective.
void train_to_the_end(Training& training, Job& job, Monitor& monitor);

}  // namespace sealift::trainer
