// SPDX-License-Identifier: Apache-2.0
// Which group is slow, and which rank is late.
// See judge.hpp.
// Groups are held to what the site expects and to the other groups of their axis; a late rank is seen by its short
// wait.
#include "communication/all_ranks.hpp"
#include "communication/judge.hpp"
#include "communication/plan.hpp"
#include "verdict/outliers.hpp"

#include <map>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// A rank is late when others wait so much longer than it does; s.
constexpr double kLateOnCpu = 0.03, kLateOnDevice = 0.002;

struct CurveOfGroup {
  std::string group, op;
  std::vector<std::int64_t> members;
  std::map<double, double> seconds;  ///< by bytes, of the slowest rank
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
        auto& seconds = curve.seconds[point.at(0).get<double>()];
        seconds = std::max(seconds, point.at(1).get<double>());
      }
    }
  }
  std::vector<CurveOfGroup> list;
  for (auto& [key, curve] : curves) list.push_back(std::move(curve));
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

std::string list_of(const std::vector<std::int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 8) return text + " and " + std::to_string(ranks.size() - i) + " more";
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  }
  return text;
}

/// Of each axis one graph; where there are several groups along it, the slowest is drawn.
void draw(const std::vector<CurveOfGroup>& curves, Check& check) {
  std::map<std::string, std::map<std::string, const CurveOfGroup*>> slowest;
  for (const auto& curve : curves) {
    auto& known = slowest[curve.group][curve.op];
    if (!known || best_of(curve) < best_of(*known)) known = &curve;
  }
  for (const auto& [group, by_op] : slowest) {
    Graph graph{.title = "bus bandwidth over " + group,
                .x = "bytes",
                .y = "bus bandwidth in GB/s",
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

void hold_to_site(const std::vector<CurveOfGroup>& curves, const Expectations& at_least,
                  std::vector<Accusation>& accused, Check& check) {
  for (const auto& curve : curves) {
    if (curve.group != "world") continue;
    const auto best = best_of(curve);
    const auto wanted = at_least.contains(curve.op) ? std::optional(at_least.at(curve.op)) : std::nullopt;
    check.figures.push_back(
        {curve.op + ", best bus bandwidth over world", best, "GB/s", wanted, {}, wanted ? "site.toml" : ""});
    if (!wanted || best >= *wanted) continue;
    const auto has = three_digits(best), wants = three_digits(*wanted);
    accused.push_back(
        {curve.op + " over world",
         {"reaches " + has + " GB/s; the site expects " + wants, "为 " + has + " GB/s；站点期望 " + wants}});
  }
}

void compare_groups_of_axes(const std::vector<CurveOfGroup>& curves, const Slow& slow,
                            std::vector<Accusation>& accused) {
  std::map<std::string, std::vector<const CurveOfGroup*>> equals;
  for (const auto& curve : curves) equals[curve.group + " " + curve.op].push_back(&curve);
  for (const auto& [name, of_axis] : equals) {
    std::vector<double> best, seconds;
    for (const auto* curve : of_axis) {
      best.push_back(best_of(*curve));
      seconds.push_back(curve->seconds.empty() ? 0 : curve->seconds.rbegin()->second);
    }
    const double least = *std::min_element(seconds.begin(), seconds.end());
    for (const auto i : slow_ones(best, slow.floor)) {
      if (seconds[i] - least < slow.seconds) continue;
      const auto has = three_digits(best[i]), typical = three_digits(typical_of(best));
      accused.push_back(
          {list_of(of_axis[i]->members),
           {"reach " + has + " GB/s in " + of_axis[i]->op + " along " + of_axis[i]->group + "; the other groups " +
                typical,
            "沿 " + of_axis[i]->group + " 的 " + of_axis[i]->op + " 为 " + has + " GB/s；其他组为 " + typical}});
    }
  }
}

/// Who enters late is not waited for by others while inside: its own wait is short, theirs is long.
void find_late(const std::vector<Measured>& all, double limit, std::vector<Accusation>& accused) {
  std::vector<double> waits;
  for (const auto& measured : all) {
    if (has_values(measured)) waits.push_back(measured.values.at("wait"));
  }
  const double typical = typical_of(waits);
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    const double wait = measured.values.at("wait");
    if (typical - wait < limit || wait > typical / 2) continue;
    const auto milliseconds = three_digits((typical - wait) * 1e3);
    accused.push_back(
        {name_of(measured),
         {"comes " + milliseconds + " ms late to collectives", "进入集合通信晚 " + milliseconds + " 毫秒"}});
  }
}

}  // namespace

void judge_bandwidth(const std::vector<Measured>& all, const Json& expected, Check& check) {
  take_facts(all, check);
  const auto curves = curves_of(all);
  draw(curves, check);
  std::vector<Accusation> accused;
  hold_to_site(curves, communication_expectations(expected, accused), accused, check);
  compare_groups_of_axes(curves, slow_for(all), accused);
  // CPU ranks of one host take turns on its cores, so there any of them may come late.
  if (!on_cpu(all) || number_of_hosts(all) > 1) find_late(all, on_cpu(all) ? kLateOnCpu : kLateOnDevice, accused);
  double latency = 0, barrier = 0;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    latency = std::max(latency, measured.values.at("wait").get<double>());
    barrier = std::max(barrier, measured.values.at("barrier").get<double>());
  }
  check.figures.push_back({"latency of all_reduce over world", latency * 1e6, "µs", {}, {}, ""});
  check.figures.push_back({"latency of barrier over world", barrier * 1e6, "µs", {}, {}, ""});
  if (!accused.empty()) return accuse(accused, check);
  check.outcome = Outcome::Pass;
  check.reason = {"no group is far slower than its equals, no rank is late, nothing is below what the site expects",
                  "没有明显慢于同类的组，没有迟到的进程，均不低于站点期望"};
}

}  // namespace sealift::verify
