// SPDX-License-Identifier: Apache-2.0
// Times of collectives by size.
// See measure.hpp.
// Of each rank: who waits and who comes late is seen from all of them together.
#include "communication/measure.hpp"
#include "communication/plan.hpp"
#include "communication/timing.hpp"

#include <algorithm>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Times of one collective over one line.
class Stopwatch {
 public:
  Stopwatch(const Line& line, at::Device device, const CommunicationFaults& faults)
      : group_(line.group), device_(device), faults_(faults) {}

  /// Seconds inside the call: the median of some, after one that is not counted.
  double of(const std::string& op, std::int64_t bytes) {
    const auto ranks = group_.size();
    const auto part = std::max<std::int64_t>(1, bytes / 4 / ranks);
    const auto options = at::TensorOptions().device(device_);
    auto whole = at::zeros({op == "broadcast" || op == "all_reduce" ? bytes / 4 : part * ranks}, options);
    auto piece = at::zeros({part}, options), out = at::zeros_like(whole);
    const std::vector<std::int64_t> rows(static_cast<std::size_t>(ranks), part);
    const auto call = [&] {
      if (op == "all_reduce") return group_.all_reduce(whole);
      if (op == "reduce_scatter") return group_.reduce_scatter(piece, whole);
      if (op == "all_gather") return group_.all_gather(whole, piece);
      if (op == "broadcast") return group_.broadcast(whole);
      return group_.all_to_all(out, whole, rows, rows);
    };
    const auto times = std::clamp<std::int64_t>((std::int64_t{32} << 20) / bytes, 3, 15);
    std::vector<double> seconds;
    group_.barrier();
    for (std::int64_t i = 0; i <= times; ++i) {
      if (faults_.before) faults_.before(op, whole);
      const auto began = Clock::now();
      call().wait();
      settle(op == "reduce_scatter" ? piece : op == "all_to_all" ? out : whole);
      if (i > 0) seconds.push_back(seconds_since(began));
    }
    return median(seconds);
  }

  double of_barrier() {
    std::vector<double> seconds;
    for (int i = 0; i < 9; ++i) {
      const auto began = Clock::now();
      group_.barrier();
      seconds.push_back(seconds_since(began));
    }
    return median(seconds);
  }

 private:
  train::Collectives group_;
  at::Device device_;
  const CommunicationFaults& faults_;
};

}  // namespace

Json measure_bandwidth(const Lines& lines, const std::vector<std::int64_t>& bytes, const CommunicationFaults& faults) {
  const auto device = lines.groups.device;
  Json curves = Json::array();
  for (const auto& line : lines.all) {
    Stopwatch watch(line, device, faults);
    for (const auto& op : kCollectives) {
      Json points = Json::array();
      for (const auto size : bytes) points.push_back({size, watch.of(op, size)});
      curves.push_back({{"group", line.name}, {"members", line.group.members()}, {"op", op}, {"points", points}});
    }
  }
  Stopwatch watch(lines.all.front(), device, faults);
  const auto wait = watch.of("all_reduce", 1024);
  return {{"cpu", device.is_cpu()},
          {"facts", facts_of_lines(lines)},
          {"curves", curves},
          {"wait", wait},
          {"barrier", watch.of_barrier()}};
}

}  // namespace sealift::verify
