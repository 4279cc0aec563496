// SPDX-License-Identifier: Apache-2.0
// The list of this room's checks.
// See checks.hpp.
// In the order in which they are run: what is wrong matters before what is slow.
#include "verify/communication/checks.hpp"

#include "verify/communication/judge.hpp"
#include "verify/communication/measure.hpp"

namespace sealift::verify {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr double kSoakSeconds = 600;

/// The lines are made by the first check that needs them, which all ranks come to.
using KeptLines = std::shared_ptr<std::optional<Lines>>;

const Lines& lines_in(const KeptLines& kept, const train::Groups& world, const Site& site) {
  if (!*kept) *kept = make_lines(world, site.local_world_size);
  return **kept;
}

std::vector<std::int64_t> bandwidth_sizes(const Site& site, at::Device device) {
  if (site.level == Level::Quick) return {4 * kKiB, 256 * kKiB, 4 * kMiB};
  std::vector<std::int64_t> sizes;
  for (auto bytes = kKiB; bytes <= (device.is_cuda() ? 1024 * kMiB : 64 * kMiB); bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

CheckKind kind_of(const char* name, Level from, Phrase title) {
  return {.name = name,
          .part = Part::Communication,
          .from = from,
          .title = std::move(title),
          .who = Who::EveryRank,
          .measure = {},
          .judge = {}};
}

}  // namespace

std::vector<CheckKind> communication_checks(train::Groups& world) {
  const auto kept = std::make_shared<std::optional<Lines>>();
  const auto lines = [kept, &world](const Site& site) -> const Lines& { return lines_in(kept, world, site); };
  const std::vector<std::int64_t> sizes{1, 3, 1023, 65537};

  auto right = kind_of("communication.right", Level::Quick,
                       {"every collective of training gives the right elements, for all dtypes and odd sizes",
                        "训练所用的每种集合通信在各数据类型和奇数长度下结果均正确"});
  right.measure = [=](const Site& site) { return measure_right(lines(site), sizes); };
  right.judge = [](const auto& all, const Site&, Check& check) { judge_right(all, check); };

  auto bandwidth = kind_of("communication.bandwidth", Level::Quick,
                           {"bus bandwidth by size over the world and each axis, and no rank comes late",
                            "全部进程间及各维度的总线带宽（按大小），且没有进程迟到"});
  bandwidth.measure = [=](const Site& site) {
    const auto& made = lines(site);
    return measure_bandwidth(made, bandwidth_sizes(site, made.groups.device));
  };
  bandwidth.judge = [](const auto& all, const Site& site, Check& check) { judge_bandwidth(all, site.expected, check); };

  auto pairs = kind_of("communication.pairs", Level::Quick,
                       {"every pair of nodes exchanges right data, none far slower than the others",
                        "每对节点之间数据交换正确，且没有明显较慢者"});
  pairs.measure = [=](const Site& site) {
    return measure_pairs(lines(site), site.host, site.level == Level::Quick ? 4 * kMiB : 32 * kMiB);
  };
  pairs.judge = [](const auto& all, const Site& site, Check& check) { judge_pairs(all, site.expected, check); };

  auto soak = kind_of("communication.soak", Level::Burn,
                      {"collectives stay right for minutes", "集合通信持续数分钟结果仍正确"});
  soak.measure = [=](const Site& site) {
    const auto part = site.expected.value("communication", nlohmann::json::object());
    return measure_right_for(lines(site), {1023, 65537, 1048577},
                             std::chrono::duration<double>(part.value("burn_seconds", kSoakSeconds)));
  };
  soak.judge = [](const auto& all, const Site&, Check& check) { judge_right(all, check); };
  return {std::move(right), std::move(bandwidth), std::move(pairs), std::move(soak)};
}

}  // namespace sealift::verify
