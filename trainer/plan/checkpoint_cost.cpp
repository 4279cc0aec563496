// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/checkpoint_cost.hpp"

#include "trainer/shown_number.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace sealift::trainer::plan {
namespace {

/// Until ranks that wait notice (timeout_seconds) and the launcher has started them again.
constexpr double kNoticeSeconds = 300;

}  // namespace

double daly_interval(double write, double between) {
  if (write >= 2 * between) return between;
  const auto part = write / (2 * between);
  return std::sqrt(2 * write * between) * (1 + std::sqrt(part) / 3 + part / 9) - write;
}

CheckpointCost checkpoint_cost(const Row& row, const std::vector<Candidate>& candidates, const Machine& machine,
                               double node_hours) {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& each) {
    return each.tuner == row.tuner && each.compute_bytes == row.way.batch.compute_bytes;
  });
  if (found == candidates.end()) throw std::invalid_argument("no candidate is a " + row.tuner);
  CheckpointCost cost;
  cost.bytes = found->shape.trained() * 12;
  cost.seconds = static_cast<double>(cost.bytes) / (machine.disk * static_cast<double>(machine.hosts));
  cost.failure_seconds = node_hours * 3600 / static_cast<double>(machine.hosts);
  cost.interval_seconds = daly_interval(cost.seconds, cost.failure_seconds);
  cost.interval_steps = std::max<std::int64_t>(1, std::llround(cost.interval_seconds / row.time.seconds));
  const auto again = cost.interval_seconds / 2 + cost.seconds + kNoticeSeconds;
  cost.overhead = cost.seconds / (cost.interval_seconds + cost.seconds) + again / cost.failure_seconds;
  cost.lost_gpu_hours = again * static_cast<double>(machine.ranks()) / 3600;
  return cost;
}

std::string words_of(const CheckpointCost& cost, Language language) {
  char text[600];
  const auto* english =
      "A checkpoint is %s and takes %s s. With a failure every %.0f hours save every %s minutes (save_steps = "
      "%lld): "
      "%s %% of the time goes into saving and repeating. A lost host costs %s GPU hours.";
  const auto* chinese =
      "检查点 %s，写入需 %s 秒。平均每 %.0f 小时一次故障，应每 %s 分钟保存一次（save_steps = %lld）：保存与重做占 "
      "%s %% "
      "的时间。丢失一台主机损失 %s GPU 小时。";
  std::snprintf(text, sizeof text, language == Language::Chinese ? chinese : english, gigabytes(cost.bytes).c_str(),
                shown_number(cost.seconds).c_str(), cost.failure_seconds / 3600,
                shown_number(cost.interval_seconds / 60).c_str(), static_cast<long long>(cost.interval_steps),
                shown_number(100 * cost.overhead, 2).c_str(), shown_number(cost.lost_gpu_hours).c_str());
  return text;
}

nlohmann::ordered_json to_json(const CheckpointCost& cost) {
  return {{"bytes", cost.bytes},
          {"seconds", cost.seconds},
          {"failure_seconds", cost.failure_seconds},
          {"interval_seconds", cost.interval_seconds},
          {"interval_steps", cost.interval_steps},
          {"overhead", cost.overhead},
          {"lost_gpu_hours", cost.lost_gpu_hours}};
}

}  // namespace sealift::trainer::plan
