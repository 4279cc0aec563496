// SPDX-License-Identifier: Apache-2.0
// Times of collectives by size, in rounds.
// See measure.hpp.
// Of each rank: who waits and who comes late is seen from all of them together.
#include "verify/communication/measure.hpp"
#include "verify/communication/plan.hpp"
#include "verify/communication/rounds.hpp"
#include "verify/communication/timing.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/outliers.hpp"

#include <algorithm>
#include <map>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// What a rank needs to send and to receive at once.
constexpr double kCoresOfRank = 2;

/// Times of one collective over one line.
class Stopwatch {
 public:
  Stopwatch(const Line& line, at::Device device, const CommunicationFaults& faults)
      : group_(line.group), device_(device), faults_(faults) {}

  /// Seconds inside the call: the median of some, after one that is not counted. Collective.
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
    const auto times = std::clamp<std::int64_t>((std::int64_t{8} << 20) / bytes, 1, 3);
    std::vector<double> seconds;
    group_.barrier();
    for (std::int64_t i = 0; i <= times; ++i) {
      if (faults_.before) faults_.before(op, whole);
      const auto began = Clock::now();
      call().wait();
      settle(op == "reduce_scatter" ? piece : op == "all_to_all" ? out : whole);
      if (i > 0) seconds.push_back(seconds_since(began));
    }
    return typical_of(seconds);
  }

  double of_barrier() {
    std::vector<double> seconds;
    for (int i = 0; i < 9; ++i) {
      const auto began = Clock::now();
      group_.barrier();
      seconds.push_back(seconds_since(began));
    }
    return typical_of(seconds);
  }

 private:
  train::Collectives group_;
  at::Device device_;
  const CommunicationFaults& faults_;
};

/// This rank's times of everything, and of all ranks what is worth another round.
class Timetable {
 public:
  Timetable(const Lines& lines, std::vector<std::int64_t> bytes, const CommunicationFaults& faults)
      : lines_(lines), bytes_(std::move(bytes)), seconds_(lines.all.size() * kCollectives.size()) {
    for (auto& of_size : seconds_) of_size.resize(bytes_.size());
    for (const auto& line : lines.all) watches_.emplace_back(line, lines.groups.device, faults);
    for (std::size_t round = 0; round < kRounds; ++round) {
      for (std::size_t row = 0; row < seconds_.size(); ++row) {
        for (std::size_t size = 0; size < bytes_.size(); ++size) take(row, size);
      }
      wait();
    }
  }

  /// Whatever seems slow in all rounds is timed again, together with its equals. Collective.
  void repeat_doubtful() {
    if (bytes_.empty()) return;
    const auto leaders = leaders_of_groups();
    for (auto round = kRounds; round < kMostRounds; ++round) {
      bool any = false;
      for (std::size_t row = 0; row < seconds_.size(); ++row) {
        if (!one_seems_slow(best_of_groups(row, leaders[row / kCollectives.size()]))) continue;
        take(row, bytes_.size() - 1);
        any = true;
      }
      if (!late_in_most(of_all_ranks(waits_), kSoonLate).empty()) {
        wait();
        any = true;
      }
      if (!any) return;
    }
  }

  Json curves() const {
    auto list = Json::array();
    for (std::size_t row = 0; row < seconds_.size(); ++row) {
      const auto& line = lines_.all[row / kCollectives.size()];
      auto points = Json::array();
      for (std::size_t size = 0; size < bytes_.size(); ++size) points.push_back({bytes_[size], seconds_[row][size]});
      list.push_back({{"group", line.name},
                      {"members", line.group.members()},
                      {"op", kCollectives[row % kCollectives.size()]},
                      {"points", points}});
    }
    return list;
  }
  const std::vector<double>& waits() const { return waits_; }
  double barrier() { return watches_.front().of_barrier(); }

 private:
  static constexpr double kSoonLate = 0.002;  ///< the least that any judge calls late

  void take(std::size_t row, std::size_t size) {
    auto& watch = watches_[row / kCollectives.size()];
    seconds_[row][size].push_back(watch.of(kCollectives[row % kCollectives.size()], bytes_[size]));
  }
  void wait() { waits_.push_back(watches_.front().of("all_reduce", 1024)); }

  /// `mine` of every rank. Collective.
  SecondsOfRanks of_all_ranks(const std::vector<double>& mine) {
    auto world = lines_.groups.world;
    auto table = at::zeros({world.size(), static_cast<std::int64_t>(mine.size())}, at::kDouble);
    table[world.rank()].copy_(at::tensor(mine, at::kDouble));
    world.all_reduce(table).wait();
    SecondsOfRanks all;
    for (std::int64_t rank = 0; rank < world.size(); ++rank) {
      const auto* row = table[rank].const_data_ptr<double>();
      all.emplace_back(row, row + mine.size());
    }
    return all;
  }

  /// By line, of each rank the first of its group. Collective.
  std::vector<std::vector<double>> leaders_of_groups() {
    std::vector<std::vector<double>> leaders;
    for (const auto& line : lines_.all) {
      leaders.emplace_back();
      for (const auto& one : of_all_ranks({static_cast<double>(line.group.members().front())}))
        leaders.back().push_back(one.front());
    }
    return leaders;
  }

  /// Of the largest size. Collective.
  std::vector<double> best_of_groups(std::size_t row, const std::vector<double>& leaders) {
    std::map<double, SecondsOfRanks> groups;
    const auto all = of_all_ranks(seconds_[row].back());
    for (std::size_t rank = 0; rank < all.size(); ++rank) groups[leaders[rank]].push_back(all[rank]);
    std::vector<double> best;
    for (const auto& [leader, ranks] : groups) best.push_back(best_round(ranks));
    return best;
  }

  const Lines& lines_;
  std::vector<std::int64_t> bytes_;
  std::vector<Stopwatch> watches_;                         ///< by line
  std::vector<std::vector<std::vector<double>>> seconds_;  ///< by line and collective, size, round
  std::vector<double> waits_;                              ///< inside the smallest all_reduce, by round
};

}  // namespace

Json measure_bandwidth(const Lines& lines, const std::vector<std::int64_t>& bytes, const CommunicationFaults& faults) {
  const Processors processors;
  Timetable times(lines, bytes, faults);
  times.repeat_doubtful();
  return {{"cpu", lines.groups.device.is_cpu()},
          {"facts", facts_of_lines(lines)},
          {"curves", times.curves()},
          {"waits", times.waits()},
          {"barrier", times.barrier()},
          {"processors", processors.taken(kCoresOfRank)}};
}

}  // namespace sealift::verify
