// SPDX-License-Identifier: Apache-2.0
// Which group is slow, and which rank is late.
// See judge.hpp.
// Groups are held to what the site expects and to the other groups of their axis; a late rank is seen by its short
// waits. Who is named stands out in round after round, and nobody is beside other work.
#include "verify/communication/all_ranks.hpp"
#include "verify/communication/judge.hpp"
#include "verify/communication/plan.hpp"
#include "verify/communication/rounds.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/outliers.hpp"
#include "verify/wording/numbers.hpp"

#include <map>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// A rank is late when others wait so much longer than it does; s.
constexpr double kLateOnCpu = 0.03, kLateOnDevice = 0.002;

struct CurveOfGroup {
  std::string group, op;
  std::vector<std::int64_t> members;
  std::map<double, SecondsOfRanks> ranks;  ///< by bytes
  std::map<double, double> seconds;        ///< by bytes, of the slowest rank in the best round
};

std::vector<CurveOfGroup> curves_of(const std::vector<Measured>& all) {
  std::map<std::string, CurveOfGroup> curves;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& json : measured.values.at("curves")) {
      auto& curve = curves[json.at("group").dump() + json.at("op").dump() + json.at("members").dump()];
      curve.group = json.at("group");
      curve.op = json.at("op");
      curve.members = json.at("members").get<std::vector<std::int64_t>>();
      for (const auto& point : json.at("points")) {
        curve.ranks[point.at(0).get<double>()].push_back(point.at(1).get<std::vector<double>>());
      }
    }
  }
  std::vector<CurveOfGroup> list;
  for (auto& [key, curve] : curves) {
    for (const auto& [bytes, ranks] : curve.ranks) curve.seconds[bytes] = best_round(ranks);
    list.push_back(std::move(curve));
  }
  return list;
}

double gigabytes(const CurveOfGroup& curve, double bytes, double seconds) {
  return bus_bandwidth(curve.op, static_cast<std::int64_t>(curve.members.size()), bytes, seconds) / 1e9;
}
double best_of(const CurveOfGroup& curve) {
  double best = 0;
  for (const auto& [bytes, seconds] : curve.seconds) best = std::max(best, gigabytes(curve, bytes, seconds));
  return best;
}

Phrase list_of(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t kSaid = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(ranks.size(), kSaid); ++i) list += (i ? ", " : "") + std::to_string(ranks[i]);
  Phrase all{(ranks.size() == 1 ? "rank " : "ranks ") + list, "进程 " + list};
  if (ranks.size() <= kSaid) return all;
  const auto more = std::to_string(ranks.size() - kSaid);
  return {all.en + " and " + more + " more", all.zh + " 等，另有 " + more + " 个"};
}

/// Of each axis one graph; where there are several groups along it, the slowest is drawn.
void draw(const std::vector<CurveOfGroup>& curves, Check& check) {
  std::map<std::string, std::map<std::string, const CurveOfGroup*>> slowest;
  for (const auto& curve : curves) {
    auto& known = slowest[curve.group][curve.op];
    if (!known || best_of(curve) < best_of(*known)) known = &curve;
  }
  for (const auto& [group, by_op] : slowest) {
    const auto over = name_of_group(group);
    Graph graph{.title = {"bus bandwidth over " + over.en, over.zh + "的总线带宽"},
                .x = {"bytes", "字节"},
                .y = {"bus bandwidth in GB/s", "总线带宽（GB/s）"},
                .log_x = true,
                .log_y = true,
                .curves = {}};
    for (const auto& [op, curve] : by_op) {
      Curve line{.name = op, .points = {}};
      for (const auto& [bytes, seconds] : curve->seconds)
        line.points.emplace_back(bytes, gigabytes(*curve, bytes, seconds));
      graph.curves.push_back(std::move(line));
    }
    check.graphs.push_back(std::move(graph));
  }
}

void hold_to_site(const std::vector<CurveOfGroup>& curves, const Expectations& at_least, Culprits& slow, Check& check) {
  for (const auto& curve : curves) {
    if (curve.group != "world") continue;
    const auto best = best_of(curve);
    const auto wanted = at_least.contains(curve.op) ? std::optional(at_least.at(curve.op)) : std::nullopt;
    check.figures.push_back({{curve.op + ", best bus bandwidth over world", curve.op + "，全部进程间的最高总线带宽"},
                             best,
                             "GB/s",
                             wanted,
                             {},
                             wanted ? "site.toml" : ""});
    if (!wanted || best >= *wanted) continue;
    const auto has = number_text(best), wants = number_text(*wanted);
    slow.add({curve.op + " over world", "全部进程间的 " + curve.op},
             {"reaches " + has + " GB/s; the site expects " + wants, has + " GB/s；站点期望 " + wants});
  }
}

/// At the largest size, which is what is timed again where one seems slow.
void compare_groups_of_axes(const std::vector<CurveOfGroup>& curves, const Slow& limits, Culprits& slow) {
  std::map<std::string, std::vector<const CurveOfGroup*>> equals;
  for (const auto& curve : curves) {
    if (!curve.seconds.empty()) equals[curve.group + " " + curve.op].push_back(&curve);
  }
  for (const auto& [name, of_axis] : equals) {
    std::vector<double> rates, seconds;
    for (const auto* curve : of_axis) {
      const auto& [bytes, took] = *curve->seconds.rbegin();
      rates.push_back(gigabytes(*curve, bytes, took));
      seconds.push_back(took);
    }
    const double least = *std::min_element(seconds.begin(), seconds.end());
    for (const auto i : slow_ones(rates, limits.floor)) {
      if (seconds[i] - least < limits.seconds) continue;
      const auto has = number_text(rates[i]), typical = number_text(typical_of(rates));
      const auto axis = name_of_group(of_axis[i]->group);
      slow.add(list_of(of_axis[i]->members),
               {"reach " + has + " GB/s in " + of_axis[i]->op + " along " + axis.en + "; the other groups " + typical,
                axis.zh + "的 " + of_axis[i]->op + " 为 " + has + " GB/s；其他组为 " + typical});
    }
  }
}

struct Waits {
  std::vector<const Measured*> who;
  SecondsOfRanks seconds;
};

Waits waits_of(const std::vector<Measured>& all) {
  Waits waits;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    waits.who.push_back(&measured);
    waits.seconds.push_back(measured.values.at("waits").get<std::vector<double>>());
  }
  return waits;
}

void find_late(const Waits& waits, double limit, Culprits& slow) {
  for (const auto& [rank, seconds] : late_in_most(waits.seconds, limit)) {
    const auto milliseconds = number_text(seconds * 1e3);
    slow.add(name_of(*waits.who[rank]),
             {"comes " + milliseconds + " ms late to collectives", "进入集合通信晚 " + milliseconds + " 毫秒"});
  }
}

}  // namespace

void judge_bandwidth(const std::vector<Measured>& all, const Json& expected, Check& check) {
  take_facts(all, check);
  const auto curves = curves_of(all);
  draw(curves, check);
  Culprits wrong_file, slow;
  hold_to_site(curves, communication_expectations(expected, wrong_file), slow, check);
  compare_groups_of_axes(curves, slow_for(all), slow);
  const auto waits = waits_of(all);
  // CPU ranks of one host take turns on its cores, so there any of them may come late.
  if (!on_cpu(all) || number_of_hosts(all) > 1) find_late(waits, on_cpu(all) ? kLateOnCpu : kLateOnDevice, slow);
  double barrier = 0;
  for (const auto* measured : waits.who) barrier = std::max(barrier, measured->values.at("barrier").get<double>());
  check.figures.push_back({{"latency of all_reduce over world", "全部进程间 all_reduce 的延迟"},
                           best_round(waits.seconds) * 1e6,
                           "µs",
                           {},
                           {},
                           ""});
  check.figures.push_back(
      {{"latency of barrier over world", "全部进程间 barrier 的延迟"}, barrier * 1e6, "µs", {}, {}, ""});
  if (accuse_of_rates(wrong_file, slow, all, check)) return;
  check.outcome = Outcome::Pass;
  check.reason = {"no group is far slower than its equals, no rank is late, nothing is below what the site expects",
                  "没有明显慢于同类的组，没有迟到的进程，没有低于站点期望的数值"};
}

}  // namespace sealift::verify
