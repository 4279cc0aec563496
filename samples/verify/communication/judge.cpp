// SPDX-License-Identifier: Apache-2.0
// Who is wrong, slow or late in collectives.
// See judge.hpp.
// Wrong data has a sender and a receiver; who of them it was follows from who else has to do with wrong data.
#include "communication/judge.hpp"

#include "communication/plan.hpp"
#include "run/accuse.hpp"
#include "verdict/outliers.hpp"

#include <map>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

/// How much slower than its equals one may be before it is named. CPU ranks of one host share cores with each other
/// and with whatever else runs; a network between hosts they share less; a GPU's link nobody shares.
constexpr double kFloorOfOneHost = 0.8, kFloorOfHosts = 0.5, kFloorOfDevices = 0.3;
/// A rank is late when others wait so much longer than it does; s.
constexpr double kLateOnCpu = 0.03, kLateOnDevice = 0.002;
/// What is less slower than this may be the host's scheduler, whatever the ratio; s.
constexpr double kNoiseOfOneHost = 0.1, kNoiseOfHosts = 0.02, kNoiseOfDevices = 0.0005;

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

void take_facts(const std::vector<Measured>& all, Check& check) {
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& fact : measured.values.at("facts")) {
      const std::pair<std::string, std::string> pair{fact.at(0), fact.at(1)};
      if (std::find(check.facts.begin(), check.facts.end(), pair) == check.facts.end()) check.facts.push_back(pair);
    }
  }
}

std::string name_of_rank(const std::vector<Measured>& all, std::int64_t rank) {
  for (const auto& measured : all) {
    if (measured.rank == rank) return name_of(measured);
  }
  return "rank " + std::to_string(rank);
}

struct WrongElement {
  std::int64_t seen_by = 0, from = -1, ranks = 0;
  std::string where;  ///< "all_gather of bf16 x 1023 over world"
  std::string element;
};

std::vector<WrongElement> wrong_elements(const std::vector<Measured>& all) {
  std::vector<WrongElement> wrong;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& fault : measured.values.at("faults")) {
      wrong.push_back({measured.rank, fault.at("from"), fault.at("ranks"),
                       fault.at("op").get<std::string>() + " of " + fault.at("dtype").get<std::string>() + " x " +
                           std::to_string(fault.at("size").get<std::int64_t>()) + " over " +
                           fault.at("group").get<std::string>(),
                       "element " + std::to_string(fault.at("index").get<std::int64_t>()) + " is " +
                           short_number(fault.at("got")) + ", expected " + short_number(fault.at("expected"))});
    }
  }
  return wrong;
}

/// Finds who must be wrong for all `wrong` elements to be.
class Blame {
 public:
  Blame(const std::vector<Measured>& all, std::vector<WrongElement> wrong) : all_(all), wrong_(std::move(wrong)) {}

  std::vector<Accusation> find() {
    blame_senders();
    blame_receivers();
    blame_pairs();
    blame_sums();
    return accused_;
  }

 private:
  void add(std::int64_t rank, const std::string& en, const std::string& zh, const WrongElement& example) {
    if (!blamed_.insert(rank).second) return;
    accused_.push_back(
        {name_of_rank(all_, rank),
         {en + ": " + example.where + ", " + example.element, zh + "：" + example.where + "，" + example.element}});
  }
  bool explained(const WrongElement& wrong) const {
    return blamed_.contains(wrong.seen_by) || blamed_.contains(wrong.from);
  }

  void blame_senders() {
    std::map<std::int64_t, std::map<std::int64_t, const WrongElement*>> receivers;
    for (const auto& wrong : wrong_) {
      if (wrong.from >= 0) receivers[wrong.from].emplace(wrong.seen_by, &wrong);
    }
    for (const auto& [sender, by] : receivers) {
      if (by.size() > 1)
        add(sender, "sends wrong data to several ranks", "向多个进程发送了错误数据", *by.begin()->second);
    }
  }

  void blame_receivers() {
    std::map<std::int64_t, std::map<std::int64_t, const WrongElement*>> senders;
    for (const auto& wrong : wrong_) {
      if (wrong.from >= 0 && !explained(wrong)) senders[wrong.seen_by].emplace(wrong.from, &wrong);
    }
    for (const auto& [receiver, from] : senders) {
      if (from.size() > 1) {
        add(receiver, "has wrong data from several ranks", "从多个进程收到错误数据", *from.begin()->second);
      }
    }
  }

  void blame_pairs() {
    for (const auto& wrong : wrong_) {
      if (wrong.from < 0 || explained(wrong)) continue;
      if (wrong.from == wrong.seen_by) {
        add(wrong.seen_by, "has its own data wrong", "自身的数据错误", wrong);
        continue;
      }
      const auto from = "rank " + std::to_string(wrong.from);
      add(wrong.seen_by, "has wrong data from " + from, "从 " + from + " 收到错误数据", wrong);
      const auto to = "rank " + std::to_string(wrong.seen_by);
      add(wrong.from, "or its link to " + to + " may have sent it wrong", "（或其到 " + to + " 的链路）可能发送错误",
          wrong);
    }
  }

  /// A wrong sum on some ranks only is theirs; on all of them it was wrong when it was sent.
  void blame_sums() {
    std::map<std::string, std::vector<const WrongElement*>> cases;
    for (const auto& wrong : wrong_) {
      if (wrong.from < 0) cases[wrong.where].push_back(&wrong);
    }
    for (const auto& [where, seen] : cases) {
      const bool by_all = static_cast<std::int64_t>(seen.size()) >= seen.front()->ranks;
      if (by_all && !accused_.empty()) continue;  // who sends wrong data adds it too
      for (const auto* wrong : seen) {
        if (explained(*wrong)) continue;
        if (by_all) {
          add(wrong->seen_by, "has a wrong sum, as all ranks of the group have", "的求和结果错误，组内所有进程均如此",
              *wrong);
        } else {
          add(wrong->seen_by, "has a wrong sum where others have the right one", "的求和结果错误，而其他进程正确",
              *wrong);
        }
      }
    }
  }

  const std::vector<Measured>& all_;
  std::vector<WrongElement> wrong_;
  std::vector<Accusation> accused_;
  std::set<std::int64_t> blamed_;
};

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

using Expectations = std::map<std::string, double>;

Expectations expectations(const Json& expected, std::vector<Accusation>& accused) {
  auto known = kCollectives;
  known.push_back("pair");
  return expectations_in(expected, "communication", "at_least_gb", known, accused);
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
    const auto has = short_number(best), wants = short_number(*wanted);
    accused.push_back(
        {curve.op + " over world",
         {"reaches " + has + " GB/s; the site expects " + wants, "为 " + has + " GB/s；站点期望 " + wants}});
  }
}

/// From when on something counts as slow.
struct Slow {
  double floor = 0;    ///< of the typical rate: see `slow_ones`
  double seconds = 0;  ///< and at least so much longer
};

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
      const auto has = short_number(best[i]), typical = short_number(typical_of(best));
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
    const auto milliseconds = short_number((typical - wait) * 1e3);
    accused.push_back(
        {name_of(measured),
         {"comes " + milliseconds + " ms late to collectives", "进入集合通信晚 " + milliseconds + " 毫秒"}});
  }
}

bool on_cpu(const std::vector<Measured>& all) {
  return std::any_of(all.begin(), all.end(),
                     [](const Measured& m) { return has_values(m) && m.values.at("cpu") == true; });
}

std::size_t number_of_hosts(const std::vector<Measured>& all) {
  std::set<std::string> hosts;
  for (const auto& measured : all) hosts.insert(measured.host);
  return hosts.size();
}

Slow slow_for(const std::vector<Measured>& all) {
  if (!on_cpu(all)) return {kFloorOfDevices, kNoiseOfDevices};
  if (number_of_hosts(all) > 1) return {kFloorOfHosts, kNoiseOfHosts};
  return {kFloorOfOneHost, kNoiseOfOneHost};
}

/// Bandwidth in GB/s by pair of nodes, from the slower of the two reports.
using PairRates = std::map<std::pair<std::size_t, std::size_t>, double>;

PairRates pair_rates(const std::vector<Measured>& all, std::size_t nodes) {
  PairRates rates;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& pair : measured.values.at("pairs")) {
      const auto one = pair.at(0).get<std::size_t>(), other = pair.at(1).get<std::size_t>();
      if (one >= nodes || other >= nodes) throw std::invalid_argument("a pair of a node that does not exist");
      const double rate = pair.at(2).get<double>() / pair.at(3).get<double>() / 1e9;
      const auto known = rates.find({one, other});
      rates[{one, other}] = known == rates.end() ? rate : std::min(rate, known->second);
    }
  }
  return rates;
}

double gigabytes_sent(const std::vector<Measured>& all) {
  for (const auto& measured : all) {
    if (has_values(measured) && !measured.values.at("pairs").empty()) {
      return measured.values.at("pairs").at(0).at(2).get<double>() / 1e9;
    }
  }
  return 0;
}

Matrix matrix_of(const PairRates& rates, const std::vector<std::string>& nodes) {
  Matrix matrix{.title = "bandwidth between nodes", .unit = "GB/s", .rows = nodes, .columns = nodes, .values = {}};
  matrix.values.resize(nodes.size() * nodes.size());
  for (const auto& [pair, rate] : rates) {
    matrix.values[pair.first * nodes.size() + pair.second] = rate;
    matrix.values[pair.second * nodes.size() + pair.first] = rate;
  }
  return matrix;
}

/// Nodes that are slow with everyone, then pairs that are slow though their nodes are not.
void find_slow_links(const PairRates& rates, const std::vector<std::string>& nodes, const Slow& slow,
                     double gigabytes_sent, std::vector<Accusation>& accused) {
  const auto stand_out = [&](const std::vector<double>& values) {
    auto found = slow_ones(values, slow.floor);
    const double typical = typical_of(values);
    std::erase_if(found,
                  [&](std::size_t i) { return gigabytes_sent / values[i] - gigabytes_sent / typical < slow.seconds; });
    return found;
  };
  std::vector<std::vector<double>> of_node(nodes.size());
  for (const auto& [pair, rate] : rates) {
    of_node[pair.first].push_back(rate);
    of_node[pair.second].push_back(rate);
  }
  std::set<std::size_t> slow_nodes;
  if (nodes.size() > 2) {
    std::vector<double> typical;
    for (const auto& own : of_node) typical.push_back(typical_of(own));
    for (const auto node : stand_out(typical)) {
      slow_nodes.insert(node);
      const auto has = short_number(typical[node]), others = short_number(typical_of(typical));
      accused.push_back({nodes[node],
                         {"reaches " + has + " GB/s with every other node; they reach " + others + " GB/s",
                          "与所有其他节点之间仅 " + has + " GB/s；其他节点为 " + others + " GB/s"}});
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::vector<double> values;
  for (const auto& [pair, rate] : rates) {
    if (slow_nodes.contains(pair.first) || slow_nodes.contains(pair.second)) continue;
    pairs.push_back(pair);
    values.push_back(rate);
  }
  for (const auto i : stand_out(values)) {
    const auto has = short_number(values[i]), others = short_number(typical_of(values));
    accused.push_back({nodes[pairs[i].first] + " - " + nodes[pairs[i].second],
                       {"reach " + has + " GB/s; other pairs " + others + " GB/s",
                        "为 " + has + " GB/s；其他节点对为 " + others + " GB/s"}});
  }
}

void hold_pairs_to_site(const PairRates& rates, const std::vector<std::string>& nodes, const Expectations& at_least,
                        std::vector<Accusation>& accused, Check& check) {
  if (rates.empty()) return;
  std::vector<double> values;
  for (const auto& [pair, rate] : rates) values.push_back(rate);
  const auto wanted = at_least.contains("pair") ? std::optional(at_least.at("pair")) : std::nullopt;
  const auto basis = wanted ? "site.toml" : "";
  check.figures.push_back({"slowest pair", *std::min_element(values.begin(), values.end()), "GB/s", wanted, {}, basis});
  check.figures.push_back({"typical pair", typical_of(values), "GB/s", {}, {}, ""});
  for (const auto& [pair, rate] : rates) {
    if (!wanted || rate >= *wanted) continue;
    const auto has = short_number(rate), wants = short_number(*wanted);
    accused.push_back(
        {nodes[pair.first] + " - " + nodes[pair.second],
         {"reach " + has + " GB/s; the site expects " + wants, "为 " + has + " GB/s；站点期望 " + wants}});
  }
}

}  // namespace

void judge_right(const std::vector<Measured>& all, Check& check) {
  take_facts(all, check);
  double cases = 0;
  for (const auto& measured : all) {
    if (has_values(measured)) cases += measured.values.at("cases").get<double>();
  }
  check.figures.push_back({"cases on all ranks", cases, "", {}, {}, ""});
  const auto accused = Blame(all, wrong_elements(all)).find();
  if (!accused.empty()) return accuse(accused, check);
  check.outcome = Outcome::Pass;
  const auto n = std::to_string(static_cast<std::int64_t>(cases)), ranks = std::to_string(all.size());
  check.reason = {"every element of " + n + " results on " + ranks + " ranks is right",
                  ranks + " 个进程的 " + n + " 个结果中每个元素都正确"};
}

void judge_bandwidth(const std::vector<Measured>& all, const Json& expected, Check& check) {
  take_facts(all, check);
  const auto curves = curves_of(all);
  draw(curves, check);
  std::vector<Accusation> accused;
  hold_to_site(curves, expectations(expected, accused), accused, check);
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

void judge_pairs(const std::vector<Measured>& all, const Json& expected, Check& check) {
  take_facts(all, check);
  std::vector<std::string> nodes;
  for (const auto& measured : all) {
    if (has_values(measured) && nodes.empty()) nodes = measured.values.at("nodes").get<std::vector<std::string>>();
  }
  const auto rates = pair_rates(all, nodes.size());
  check.matrices.push_back(matrix_of(rates, nodes));
  auto accused = Blame(all, wrong_elements(all)).find();
  hold_pairs_to_site(rates, nodes, expectations(expected, accused), accused, check);
  find_slow_links(rates, nodes, slow_for(all), gigabytes_sent(all), accused);
  if (!accused.empty()) return accuse(accused, check);
  check.outcome = Outcome::Pass;
  const auto n = std::to_string(rates.size()), m = std::to_string(nodes.size());
  check.reason = {rates.size() == 1
                      ? "the one pair of " + m + " nodes exchanged right data"
                      : n + " pairs of " + m + " nodes exchanged right data, none far slower than the others",
                  m + " 个节点的 " + n + " 个节点对数据交换正确" + (rates.size() == 1 ? "" : "，没有明显较慢者")};
}

}  // namespace sealift::verify
