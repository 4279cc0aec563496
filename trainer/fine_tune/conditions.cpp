// SPDX-License-Identifier: Apache-2.0
// See conditions.hpp.
#include "trainer/fine_tune/conditions.hpp"

#include "trainer/shown_number.hpp"

namespace sealift::trainer {
namespace {

constexpr const char* kStepsNote = "steps";
constexpr const char* kMicroBatchNote = "micro_batch";

std::int64_t noted_number(const Texts& notes, const char* key) {
  const auto found = notes.find(key);
  return found == notes.end() ? 0 : std::atoll(found->second.c_str());
}

/// For a job that is longer or shorter now; empty where no rate that is still to come is another.
std::string changed_schedule(std::int64_t then, const FineTuneOptions& options, std::int64_t steps, std::int64_t step) {
  const auto before = schedule_of(options, then), now = schedule_of(options, steps);
  for (auto next = step; next < steps; ++next) {
    if (before.rate(next) == now.rate(next)) continue;
    return c10::str("note: the job has ", steps, " steps and had ", then, " when step ", step,
                    " was saved, so its schedule is another from step ", next + 1, " on: there the learning rate is ",
                    exact_number(now.rate(next)), ", by the one before ", exact_number(before.rate(next)),
                    "; a job of ", steps, " steps from the beginning has other rates in the steps before, too");
  }
  return {};
}

}  // namespace

Schedule schedule_of(const FineTuneOptions& options, std::int64_t steps) {
  return Schedule({.type = options.lr_scheduler_type,
                   .parameters = options.lr_scheduler_kwargs,
                   .learning_rate = options.peak_rate(),
                   .steps = steps,
                   .warmup_steps = options.warmup_steps,
                   .warmup_ratio = options.warmup_ratio,
                   .warmup_rule = options.warmup_rule});
}

Texts conditions_of(const FineTuneOptions& options, const Place& place, std::int64_t steps) {
  return {{kStepsNote, std::to_string(steps)},
          {kMicroBatchNote, std::to_string(options.per_device_train_batch_size)},
          computed_with(place)};
}

void require_same_cut(const Texts& then, const FineTuneOptions& options, const Goal& goal,
                      const std::string& checkpoint) {
  const auto rows = noted_number(then, kMicroBatchNote), now = options.per_device_train_batch_size;
  auto what = goal.mean_of_micro_batches();
  if (what.empty() && options.router_aux_loss_coef > 0) what = "router_aux_loss_coef";
  TORCH_CHECK(rows == 0 || rows == now || what.empty(), checkpoint, " was made with per_device_train_batch_size ", rows,
              ", which is ", now, " now; ", what,
              " is a mean over each micro-batch, so other micro-batches are another ",
              "objective; give per_device_train_batch_size ", rows, " with the gradient_accumulation_steps that keep ",
              "the rows of a step, or another output_dir");
}

std::vector<std::string> changed_conditions(const Texts& then, const FineTuneOptions& options, const Place& place,
                                            std::int64_t steps, std::int64_t step) {
  std::vector<std::string> lines;
  if (const auto before = noted_number(then, kStepsNote); before > 0 && before != steps) {
    if (auto line = changed_schedule(before, options, steps, step); !line.empty()) lines.push_back(std::move(line));
  }
  if (auto line = other_means(then, place); !line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace sealift::trainer
