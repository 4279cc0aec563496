// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step: warm-up and decay by the names and formulas of transformers' get_scheduler.
// Asked by the loop before each optimizer step. Pure arithmetic, so that --dry-run can print it.
// A factor of the peak, as there: rates of several parameter groups keep their ratio.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::trainer {

/// What a job says of its schedule.
struct ScheduleOptions {
  std::string type = "cosine";     ///< lr_scheduler_type
  std::string parameters;          ///< lr_scheduler_kwargs: a JSON object; empty: the type's defaults
  double learning_rate = 1e-4;     ///< the peak
  std::int64_t steps = 0;          ///< of the whole job
  std::int64_t warmup_steps = 0;   ///< above 0: of the warm-up
  double warmup_ratio = 0;         ///< else this part of `steps`
  std::string warmup_rule = "up";  ///< how a part becomes steps: up; axolotl: down, 3 % and at most 100 where it is 0
};

class Schedule {
 public:
  /// Throws std::invalid_argument for a type, or a key of the parameters, that there is not; naming all that there
  /// are.
  explicit Schedule(const ScheduleOptions& options);

  /// The rate of optimizer step `step`, counted from 0. Beyond the last step as at the last, or zero.
  double rate(std::int64_t step) const { return options_.learning_rate * factor(step); }

  /// The same by the peak.
  double factor(std::int64_t step) const;

  std::int64_t warmup_steps() const { return warmup_; }

 private:
  double decayed(std::int64_t step) const;

  ScheduleOptions options_;
  std::int64_t warmup_ = 0;
  // Of the types that have them, by the names of the key.
  double num_cycles_ = 0.5, lr_end_ = 1e-7, power_ = 1, min_lr_rate_ = 0, warmup_lr_rate_ = -1;
  std::int64_t timescale_ = 0, num_decay_steps_ = 0, num_stable_steps_ = -1;
  std::string warmup_type_ = "linear", decay_type_ = "cosine";
};

}  // namespace sealift::trainer
