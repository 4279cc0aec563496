// SPDX-License-Identifier: Apache-2.0
// What a loop works on and asks: a training, and the job that knows its model and data.
// Below loop.hpp, which goes through the steps, and not_finite.hpp, which does one again.
// Only the policy tells one process, ddp, fsdp and hsdp apart, and only what a Job says tells one job from another.
#pragma once

#include "trainer/loop/decay_groups.hpp"
#include "trainer/loop/endings.hpp"
#include "trainer/loop/position.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/ranks/place.hpp"

namespace sealift::trainer {

/// What to do with a step whose loss or gradient is not finite.
enum class OnNonFinite {
  Stop,      ///< the run ends
  Skip,      ///< the optimizer does not take it, and the next step follows
  Rollback,  ///< back to the last checkpoint, and on with the rows after this step
};

/// What a job says of its loop before it begins.
struct LoopOptions {
  OptimizerOptions optimizer;
  double clip = 0;         ///< largest norm of the gradients; 0: no clipping
  bool scales = false;     ///< the loss, for fp16
  std::string out;         ///< folder of log.jsonl
  std::int64_t steps = 0;  ///< of the whole job
  OnNonFinite on_nonfinite = OnNonFinite::Stop;
  std::int64_t time_limit = 0;  ///< seconds of the process after which it saves and ends; 0: none
};

/// From step `from` back to the checkpoint of step `to`.
struct RolledBack {
  std::int64_t from = 0, to = 0;
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

  // What became of it, for its result.
  std::optional<EndWishes> ended_by = {};       ///< nothing: it is finished
  std::int64_t saved_after = 0;                 ///< the step of the last checkpoint; 0: there is none
  std::vector<std::int64_t> failed_saves = {};  ///< steps
  std::vector<RolledBack> rolled_back = {};
};

/// Of a step, over all ranks and micro-batches.
struct StepSums {
  double loss = 0;  ///< the mean
  std::int64_t tokens = 0;
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();  ///< of the objective, by name
  EndWishes ends = {};
};

/// What a step came to.
struct StepOutcome {
  StepResult result;
  double rate = 0;  ///< that it was taken with
  nlohmann::ordered_json metrics;
};

/// What the loop asks of a job. Until the position is moved on, the step is the one after `Training::position`; all
/// ranks ask alike, and each call that is not const may be collective.
class Job {
 public:
  virtual ~Job() = default;

  /// Draws this rank's micro-batches of the step; how many there are.
  virtual std::int64_t begin_step() = 0;

  /// What is differentiated for micro-batch `number`. Gradients are divided by the number of ranks later.
  virtual at::Tensor loss_of(std::int64_t number) = 0;

  /// After its backward.
  virtual void end_micro_batch() {}

  /// After the backward of all, before the optimizer's step, so that a loss which is not finite never reaches it.
  /// `mine`: what of the sum of `ends` is this rank's. Waits for the device.
  virtual StepSums end_step(const EndWishes& mine) = 0;

  /// The micro-batches of the step that has ended are asked for once more: something was not finite.
  virtual void begin_again() {}

  /// The rows of micro-batch `number` of this rank, to follow its name in a message.
  virtual std::string rows_of(std::int64_t /*number*/) const { return ""; }

  /// What is trained.
  virtual const torch::nn::Module& model() const = 0;

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

  /// Whether it keeps checkpoints, and whether one is due after the step that is done.
  virtual bool saves() const = 0;
  virtual bool save_is_due() const = 0;

  /// Saves a checkpoint; train::SaveFailed where it cannot.
  virtual void save() = 0;

  /// Sets everything but the place in the data to what the last checkpoint has; false: there is none to go back to.
  virtual bool roll_back() { return false; }
};

}  // namespace sealift::trainer
