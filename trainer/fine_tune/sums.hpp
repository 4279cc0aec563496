// SPDX-License-Identifier: Apache-2.0
// Sums over all ranks of what examples gave: the loss, an objective's metrics, and what they are divided by.
// Used by a fine-tuning job for its steps and its evaluations.
// Sums by counts, and no means of means: a number does not depend on how many ranks share the examples.
#pragma once

#include "trainer/loop/endings.hpp"
#include "trainer/objectives/objective.hpp"

#include <sealift/train.hpp>

#include <nlohmann/json.hpp>

namespace sealift::trainer {

/// The sum over all ranks of numbers that each has on its host. Collective.
inline std::vector<std::int64_t> sum_over_ranks(train::Groups& world, const std::vector<std::int64_t>& mine) {
  const auto own = torch::tensor(mine, torch::kInt64);
  auto all = own.repeat({world.world.size()});
  world.world.all_gather(all, own, "sizes of the step").wait();
  const auto sums = all.view({world.world.size(), -1}).sum(0).contiguous();
  return {sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + sums.numel()};
}

/// Sums on the device: the loss, each metric and its count, and how many ranks want to end.
class MetricSums {
 public:
  explicit MetricSums(at::Device device) : sums_(torch::zeros({kEnds + 2}, at::dtype(at::kDouble).device(device))) {}

  void add(const Objective& objective) {
    TORCH_CHECK(objective.metrics.size() <= kMost, "an objective has ", objective.metrics.size(),
                " metrics; the loop sums up ", kMost);
    sums_[0] += objective.sum.detach();
    names_.resize(objective.metrics.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto at = static_cast<std::int64_t>(1 + 2 * i);
      names_[i] = objective.metrics[i].name;
      sums_[at] += objective.metrics[i].sum;
      sums_[at + 1] += static_cast<double>(objective.metrics[i].count);
    }
  }

  void add(const EndWishes& mine) {
    if (!mine.any()) return;
    sums_[kEnds] += static_cast<double>(mine.told);
    sums_[kEnds + 1] += static_cast<double>(mine.late);
  }

  /// Over all ranks; waits for the device. Collective.
  void reduce(train::Groups& world) {
    world.world.all_reduce(sums_).wait();
    sums_ = sums_.cpu();
  }

  double loss() const { return sums_[0].item<double>(); }

  EndWishes ends() const {
    return {.told = static_cast<std::int64_t>(sums_[kEnds].item<double>()),
            .late = static_cast<std::int64_t>(sums_[kEnds + 1].item<double>())};
  }

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
  static constexpr std::size_t kMost = 10;  // the same on a rank that has no examples, which knows no names
  static constexpr std::int64_t kEnds = 1 + 2 * static_cast<std::int64_t>(kMost);

  at::Tensor sums_;
  std::vector<std::string> names_;
};

}  // namespace sealift::trainer
