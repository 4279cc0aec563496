// SPDX-License-Identifier: Apache-2.0
// What a run cost: start-up, tokens per second, waits for communication, memory, checkpoints.
// The loop tells it of steps and checkpoints, the core's units through a `Timeline`; at the end it reports into
// result.json. On request it also writes scalars for TensorBoard and a Chrome trace of the last steps.
// Beside the core, on its observer seam. Each rank measures itself; only `report` talks to the others.
#pragma once

#include "trainer/monitor/advice.hpp"
#include "trainer/monitor/chrome_trace.hpp"
#include "trainer/monitor/start_up.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/monitor/tensorboard.hpp"
#include "trainer/settings/job_options.hpp"

#include <sealift/train/comm/groups.hpp>
#include <sealift/train/step/timeline.hpp>

#include <deque>

namespace sealift::trainer {

class Monitor {
 public:
  /// Where this rank is, and what it trains by.
  struct Place {
    std::int64_t rank = 0, world_size = 1;
    at::Device device = at::kCPU;
    train::Policy policy;
    std::int64_t micro_batches = 1;  ///< of a step
  };

  /// Rank 0 opens the files that `options` asks for, so that a wrong path ends the run now and not after it.
  Monitor(const HostOptions& options, Place place);

  /// To be told of the units: `parallel.observe(monitor.timeline())`.
  std::shared_ptr<train::Timeline> timeline() const { return timeline_; }

  /// Start-up phase `name` is over; see StartUp.
  void started(const std::string& name) { start_up_.finished(name); }

  void begin_step();
  /// `number` counts from 1, over the runs that a run resumes. The device must be done with the step.
  void end_step(std::int64_t number, const StepResult& result);

  /// A line of the log: its numbers become scalars, "train/learning_rate", "eval/loss". Those of `end_step` have
  /// theirs.
  void logged(const nlohmann::ordered_json& line);

  /// Runs `save`, which returns whether it saved a checkpoint of step `number`, and takes its time.
  template <class Save>
  void checkpoint(std::int64_t number, const Save& save) {
    const auto begin = timeline_->now();
    if (save()) saved(number, begin, timeline_->now());
  }

  /// Key "monitor" of result.json, the same on all ranks, and writes the trace. Collective over `world`.
  nlohmann::ordered_json report(train::Collectives& world);

 private:
  struct Step {
    LoopSpan span;
    std::vector<train::TimedActivity> activities;
  };
  struct Checkpoint {
    std::int64_t step = 0;
    double seconds = 0;
  };

  void saved(std::int64_t number, double begin, double end);
  void say(const std::optional<std::string>& advice);
  void scalar(std::int64_t step, const std::string& name, double value);
  ExposedShare exposed_share() const;
  void write_trace(train::Collectives& world);

  HostOptions options_;
  Place place_;
  StartUp start_up_;
  std::shared_ptr<train::Timeline> timeline_;
  std::optional<TensorBoard> tensorboard_;
  std::optional<std::ofstream> trace_;

  double step_begin_ = 0;
  std::int64_t steps_ = 0;  ///< of this process
  std::int64_t last_ = 0;   ///< the step that ended last
  // Of the steps that count: all but the first, which is slow, unless there is no other.
  std::vector<double> step_seconds_, tokens_per_second_;
  train::StepTimes times_;
  std::vector<Checkpoint> checkpoints_;
  std::deque<Step> last_steps_;        ///< for the trace
  std::vector<LoopSpan> saved_spans_;  ///< ...
  bool advised_ = false;
};

/// What a report says in a line: "5210 tokens/s per device, 12 % waiting for communication, peak 310 MiB ...".
std::string cost_line(const nlohmann::ordered_json& report);

}  // namespace sealift::trainer
