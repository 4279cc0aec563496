// SPDX-License-Identifier: Apache-2.0
// Compares two verdicts check by check.
// See compare.hpp: outcomes -> figures -> curves -> facts.
// Figures and facts of one name are matched in their order, since a check may give one of each rank the same name.
#include "verify/verdict/compare.hpp"

#include "verify/verdict/json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

namespace sealift::verify {
namespace {

using Checks = std::map<std::string, const Check*>;

Checks by_name(const Verdict& verdict, const char* which) {
  Checks checks;
  for (const auto& check : verdict.checks) {
    if (!checks.emplace(check.name, &check).second) {
      throw std::invalid_argument(std::string("report ") + which + " has the check " + check.name + " twice");
    }
  }
  return checks;
}

/// How good an outcome is; a check that is not in a report was not run.
int worth(std::optional<Outcome> outcome) {
  if (!outcome || *outcome == Outcome::NotRun) return 1;
  return *outcome == Outcome::Pass ? 2 : 0;
}

Turn turn_of(std::optional<Outcome> before, std::optional<Outcome> after) {
  if (worth(before) == worth(after)) return Turn::Changed;
  return worth(after) < worth(before) ? Turn::Worse : Turn::Better;
}

/// Of two levels: the lower one runs fewer checks, at other sizes. The site has not changed.
Turn turn_across_levels(std::optional<Outcome> before, std::optional<Outcome> after) {
  const bool both = before && after && *before != Outcome::NotRun && *after != Outcome::NotRun;
  return both || after == Outcome::Fail ? turn_of(before, after) : Turn::Changed;
}

/// The items of `all` under their name and their number among those of the same name.
template <class Item, class NameOf>
auto numbered_items(const std::vector<Item>& all, NameOf name_of_item) {
  std::map<std::string, std::size_t> seen;
  std::map<std::pair<std::string, std::size_t>, const Item*> items;
  for (const auto& item : all) {
    const std::string& name = name_of_item(item);
    items[{name, seen[name]++}] = &item;
  }
  return items;
}

double relative_change(double before, double after) {
  if (!std::isfinite(before) || !std::isfinite(after)) return std::nan("");
  const double larger = std::max(std::fabs(before), std::fabs(after));
  // Divided first, since a difference of doubles may overflow.
  return larger == 0 ? 0 : (after / larger - before / larger);
}

bool has_moved(double before, double after, double relative, double threshold) {
  if (before == after || (std::isnan(before) && std::isnan(after))) return false;
  return std::isnan(relative) || std::fabs(relative) > threshold;
}

Turn turn_of(const Figure& before, const Figure& after) {
  // A loss that became no number is worse whatever was expected of it.
  if (std::isfinite(before.value) != std::isfinite(after.value)) {
    if (std::isnan(after.value)) return Turn::Worse;
    if (std::isnan(before.value)) return Turn::Better;
  }
  const auto is_outside = [](const Figure& figure) {
    return (figure.at_least && figure.value < *figure.at_least) || (figure.at_most && figure.value > *figure.at_most);
  };
  if (is_outside(before) != is_outside(after)) return is_outside(after) ? Turn::Worse : Turn::Better;
  if (after.at_least.has_value() == after.at_most.has_value()) return Turn::Changed;
  const bool up = after.value > before.value;
  return up == after.at_least.has_value() ? Turn::Better : Turn::Worse;
}

void compare_figures(const Check& before, const Check& after, Comparison& comparison) {
  const auto name = [](const Figure& figure) -> const std::string& { return figure.name.en; };
  const auto old = numbered_items(before.figures, name), now = numbered_items(after.figures, name);
  const auto only_in_one = [&](std::optional<Figure> was, std::optional<Figure> is) {
    comparison.figures.push_back(
        {.check = after.name, .before = std::move(was), .after = std::move(is), .relative = std::nan("")});
  };
  for (const auto& [key, figure] : old) {
    const auto found = now.find(key);
    if (found == now.end() || found->second->unit.en != figure->unit.en) only_in_one(*figure, std::nullopt);
  }
  for (const auto& [key, figure] : now) {
    const auto found = old.find(key);
    if (found == old.end() || found->second->unit.en != figure->unit.en) {
      only_in_one(std::nullopt, *figure);
      continue;
    }
    const auto& was = *found->second;
    FigureChange change{.check = after.name, .before = was, .after = *figure};
    change.relative = relative_change(was.value, figure->value);
    change.moved = has_moved(was.value, figure->value, change.relative, comparison.threshold);
    change.expectation_changed = was.at_least != figure->at_least || was.at_most != figure->at_most;
    if (change.moved && !comparison.different_levels) change.turn = turn_of(was, *figure);
    if (change.moved || change.expectation_changed) comparison.figures.push_back(std::move(change));
  }
}

/// The points of both curves, side by side in the order of x.
std::map<double, std::pair<std::optional<double>, std::optional<double>>> side_by_side(const Curve& before,
                                                                                       const Curve& after) {
  std::map<double, std::pair<std::optional<double>, std::optional<double>>> points;
  for (const auto& [x, y] : before.points) points[x].first = y;
  for (const auto& [x, y] : after.points) points[x].second = y;
  return points;
}

CurveChange difference_of(const Curve& before, const Curve& after) {
  CurveChange change{.check = {},
                     .graph = {},
                     .curve = after.name,
                     .axis = {},
                     .first = {},
                     .before = {},
                     .after = {},
                     .largest = 0,
                     .before_points = before.points.size(),
                     .after_points = after.points.size()};
  for (const auto& [x, values] : side_by_side(before, after)) {
    const auto& [was, now] = values;
    const bool both = was && now;
    if (both && (*was == *now || (std::isnan(*was) && std::isnan(*now)))) continue;
    if (!change.first) change.first = x, change.before = was, change.after = now;
    if (!both) continue;
    const double relative = std::fabs(relative_change(*was, *now));
    change.largest =
        std::isnan(relative) ? std::numeric_limits<double>::infinity() : std::max(change.largest, relative);
  }
  return change;
}

/// The curves of one graph, which a report may lack.
void compare_curves_of(const std::string& check, const Graph* before, const Graph* after, Comparison& comparison) {
  const auto name = [](const Curve& curve) -> const std::string& { return curve.name.en; };
  const auto& graph = after ? *after : *before;
  const std::vector<Curve> none;
  const auto old = numbered_items(before ? before->curves : none, name);
  const auto now = numbered_items(after ? after->curves : none, name);
  const auto compare_two = [&](const Curve& was, const Curve& is) {
    if (was.expected || is.expected) return;
    auto change = difference_of(was, is);
    const bool moved = change.largest > comparison.threshold || change.before_points != change.after_points;
    if (!change.first || !(moved || graph.x.en == "step")) return;
    change.check = check, change.graph = graph.title, change.axis = graph.x;
    comparison.curves.push_back(std::move(change));
  };
  const auto without_points = [](const Curve& curve) {
    return Curve{.name = curve.name, .points = {}, .expected = curve.expected};
  };
  for (const auto& [key, curve] : now) {
    const auto was = old.find(key);
    compare_two(was == old.end() ? without_points(*curve) : *was->second, *curve);
  }
  for (const auto& [key, curve] : old) {
    if (!now.count(key)) compare_two(*curve, without_points(*curve));
  }
}

void compare_curves(const Check& before, const Check& after, Comparison& comparison) {
  const auto title = [](const Graph& graph) -> const std::string& { return graph.title.en; };
  const auto old = numbered_items(before.graphs, title), now = numbered_items(after.graphs, title);
  for (const auto& [key, graph] : now) {
    const auto was = old.find(key);
    compare_curves_of(after.name, was == old.end() ? nullptr : was->second, graph, comparison);
  }
  for (const auto& [key, graph] : old) {
    if (!now.count(key)) compare_curves_of(after.name, graph, nullptr, comparison);
  }
}

void compare_facts(const std::string& check, const std::vector<Fact>& before, const std::vector<Fact>& after,
                   Comparison& comparison) {
  const auto name = [](const Fact& fact) -> const std::string& { return fact.name.en; };
  const auto old = numbered_items(before, name), now = numbered_items(after, name);
  for (const auto& [key, fact] : old) {
    if (!now.count(key)) comparison.facts.push_back({check, fact->name, fact->value, std::nullopt});
  }
  for (const auto& [key, fact] : now) {
    const auto found = old.find(key);
    const auto was = found == old.end() ? std::nullopt : std::optional(found->second->value);
    if (!was || was->en != fact->value.en) comparison.facts.push_back({check, fact->name, was, fact->value});
  }
}

/// What a report says of itself, as facts.
std::vector<Fact> facts_of(const Verdict& verdict) {
  std::size_t ranks = 0;
  for (const auto& node : verdict.nodes) ranks += node.ranks.size();
  std::vector<Fact> facts{{{"site", "站点"}, verdict.site},
                          {{"level", "级别"}, name_of(verdict.level)},
                          {{"program", "程序"}, verdict.program},
                          {{"hosts", "主机数"}, std::to_string(verdict.nodes.size())},
                          {{"ranks", "进程数"}, std::to_string(ranks)}};
  if (!verdict.bundle) return facts;
  facts.push_back({{"bundle", "包"}, verdict.bundle->name + " " + verdict.bundle->version});
  facts.push_back({{"manifest", "清单"}, verdict.bundle->manifest_sha256});
  for (const auto& signer : verdict.bundle->signers) facts.push_back({{"signer", "签名者"}, signer});
  return facts;
}

/// The devices of hosts that both reports have: another site has other hosts, which says nothing.
std::vector<Fact> devices_of(const Verdict& verdict, const Verdict& other) {
  std::set<std::string> hosts;
  for (const auto& node : other.nodes) hosts.insert(node.host);
  std::vector<Fact> facts;
  for (const auto& node : verdict.nodes) {
    if (!hosts.count(node.host)) continue;
    for (const auto& device : node.devices)
      facts.push_back({{"device of " + node.host, node.host + " 的设备"}, device});
  }
  return facts;
}

}  // namespace

std::size_t Comparison::worse() const {
  const auto is_worse = [](const auto& change) { return change.turn == Turn::Worse; };
  return static_cast<std::size_t>(std::count_if(outcomes.begin(), outcomes.end(), is_worse) +
                                  std::count_if(figures.begin(), figures.end(), is_worse));
}

Comparison compare(const Verdict& before, const Verdict& after, double threshold) {
  if (!(threshold >= 0 && threshold <= 1)) throw std::invalid_argument("the threshold is not from 0 to 1");
  Comparison comparison;
  comparison.threshold = threshold;
  comparison.different_levels = before.level != after.level;
  compare_facts("", facts_of(before), facts_of(after), comparison);
  compare_facts("", devices_of(before, after), devices_of(after, before), comparison);
  const auto old = by_name(before, "A"), now = by_name(after, "B");
  const auto turn = [&](std::optional<Outcome> was, std::optional<Outcome> is) {
    return comparison.different_levels ? turn_across_levels(was, is) : turn_of(was, is);
  };
  bool any_common = false;
  for (const auto& check : before.checks) {
    const auto found = now.find(check.name);
    if (found == now.end()) {
      comparison.outcomes.push_back(
          {check.name, check.title, check.reason, check.outcome, std::nullopt, turn(check.outcome, std::nullopt)});
      continue;
    }
    any_common = true;
    const auto& later = *found->second;
    if (check.outcome != later.outcome) {
      comparison.outcomes.push_back(
          {check.name, later.title, later.reason, check.outcome, later.outcome, turn(check.outcome, later.outcome)});
    }
    compare_figures(check, later, comparison);
    compare_curves(check, later, comparison);
    compare_facts(check.name, check.facts, later.facts, comparison);
  }
  for (const auto& check : after.checks) {
    if (old.count(check.name)) continue;
    comparison.outcomes.push_back(
        {check.name, check.title, check.reason, std::nullopt, check.outcome, turn(std::nullopt, check.outcome)});
  }
  if (!any_common) throw std::invalid_argument("the two reports have no check in common; are both of this program?");
  return comparison;
}

}  // namespace sealift::verify
