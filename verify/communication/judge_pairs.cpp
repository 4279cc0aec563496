// SPDX-License-Identifier: Apache-2.0
// Which node, or which link between two, is slow or loses packets.
// See judge.hpp.
// A node that is slow with everyone is named alone, so that one cable is not reported once for each other node.
#include "verify/communication/all_ranks.hpp"
#include "verify/communication/blame.hpp"
#include "verify/communication/judge.hpp"
#include "verify/communication/lossy_links.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/json.hpp"
#include "verify/verdict/outliers.hpp"
#include "verify/wording/numbers.hpp"

#include <map>
#include <set>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;

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

Matrix matrix_of(const PairRates& rates, const std::vector<Phrase>& nodes) {
  Matrix matrix{.title = {"bandwidth between nodes", "节点间带宽"},
                .unit = "GB/s",
                .rows = nodes,
                .columns = nodes,
                .values = {}};
  matrix.values.resize(nodes.size() * nodes.size());
  for (const auto& [pair, rate] : rates) {
    matrix.values[pair.first * nodes.size() + pair.second] = rate;
    matrix.values[pair.second * nodes.size() + pair.first] = rate;
  }
  return matrix;
}

/// Three quarters of the `rates` of a node are at most this: one slow link among noisy ones does not lower it.
double upper_quartile(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates.empty() ? 0 : rates[rates.size() * 3 / 4];
}

/// Nodes that are slow with everyone, then pairs that are slow though their nodes are not.
void find_slow_links(const PairRates& rates, const std::vector<Phrase>& nodes, const Slow& slow, double gigabytes_sent,
                     Culprits& found_slow) {
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
      if (upper_quartile(of_node[node]) >= (1 - slow.floor) * typical_of(typical)) continue;
      slow_nodes.insert(node);
      const auto has = number_text(typical[node]), others = number_text(typical_of(typical));
      found_slow.add(nodes[node], {"reaches " + has + " GB/s with every other node; they reach " + others + " GB/s",
                                   "与所有其他节点之间仅 " + has + " GB/s；其他节点为 " + others + " GB/s"});
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
    const auto has = number_text(values[i]), others = number_text(typical_of(values));
    found_slow.add(
        pair_of(nodes[pairs[i].first], nodes[pairs[i].second]),
        {"reach " + has + " GB/s; other pairs " + others + " GB/s", has + " GB/s；其他节点对为 " + others + " GB/s"});
  }
}

void hold_pairs_to_site(const PairRates& rates, const std::vector<Phrase>& nodes, const Expectations& at_least,
                        Culprits& slow, Check& check) {
  if (rates.empty()) return;
  std::vector<double> values;
  for (const auto& [pair, rate] : rates) values.push_back(rate);
  const auto wanted = at_least.contains("pair") ? std::optional(at_least.at("pair")) : std::nullopt;
  const auto basis = wanted ? "site.toml" : "";
  check.figures.push_back(
      {{"slowest pair", "最慢的节点对"}, *std::min_element(values.begin(), values.end()), "GB/s", wanted, {}, basis});
  check.figures.push_back({{"typical pair", "典型的节点对"}, typical_of(values), "GB/s", {}, {}, ""});
  for (const auto& [pair, rate] : rates) {
    if (!wanted || rate >= *wanted) continue;
    const auto has = number_text(rate), wants = number_text(*wanted);
    slow.add(pair_of(nodes[pair.first], nodes[pair.second]),
             {"reach " + has + " GB/s; the site expects " + wants, has + " GB/s；站点期望 " + wants});
  }
}

/// Where most pairs are far slower than the fastest, the median is slow itself and accuses nobody: hosts at both ends
/// of them may be slow, or the fastest two be nearer to each other. Which, only the site can tell.
std::optional<Phrase> most_are_far_slower(const PairRates& rates, const std::vector<Phrase>& nodes, const Slow& slow,
                                          double gigabytes_sent) {
  if (rates.empty()) return std::nullopt;
  std::vector<double> values;
  for (const auto& [pair, rate] : rates) values.push_back(rate);
  const auto fastest = std::max_element(rates.begin(), rates.end(),
                                        [](const auto& one, const auto& other) { return one.second < other.second; });
  const double typical = typical_of(values), best = fastest->second;
  if (typical >= kFarBelow * best || gigabytes_sent / typical - gigabytes_sent / best < slow.seconds) {
    return std::nullopt;
  }
  const auto has = number_text(typical), reaches = number_text(best);
  const auto pair = pair_of(nodes[fastest->first.first], nodes[fastest->first.second]);
  return Phrase{"most pairs reach " + has + " GB/s or less, and " + pair.en + " reach " + reaches +
                    " GB/s: most may be slow, or these two be nearer to each other, so nobody is named; set pair in " +
                    "[communication.at_least_gb] of site.toml to what every pair must reach, and run again",
                "多数节点对不超过 " + has + " GB/s，而 " + pair.zh + " 达到 " + reaches +
                    " GB/s：可能多数偏慢，也可能这两个节点相距更近，因此不认定任何一方；请在 site.toml 的 " +
                    "[communication.at_least_gb] 中用 pair 写明每对节点应达到的数值，然后重新运行"};
}

/// NOT RUN for `unknown`, by other work where there was any; a quota that held ranks back is accused in its place.
void leave_open(const Phrase& unknown, const std::vector<Measured>& all, Check& check) {
  if (const auto held = held_back(all); !held.empty()) return held.accuse(check);
  check.outcome = Outcome::NotRun;
  check.reason = unknown;
  if (const auto busy = other_work(all)) {
    check.reason = {"the machine was busy: " + busy->en + "; " + unknown.en,
                    "机器繁忙：" + busy->zh + "；" + unknown.zh};
  }
}

/// How much longer the slowest exchange of a pair took than its fastest.
double unsteadiness(const std::vector<Measured>& all) {
  double most = 0;
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& pair : measured.values.at("pairs")) {
      most = std::max(most, pair.at(4).get<double>() / pair.at(3).get<double>());
    }
  }
  return most;
}

}  // namespace

void judge_pairs(const std::vector<Measured>& all, const Json& expected, Check& check) {
  take_facts(all, check);
  std::vector<Phrase> nodes;
  for (const auto& measured : all) {
    if (!has_values(measured) || !nodes.empty()) continue;
    for (const auto& node : measured.values.at("nodes")) nodes.push_back(phrase_from(node));
  }
  const auto rates = pair_rates(all, nodes.size());
  check.matrices.push_back(matrix_of(rates, nodes));
  auto culprits = blame_for_wrong_elements(all);
  Culprits slow;
  const auto at_least = communication_expectations(expected, culprits);
  hold_pairs_to_site(rates, nodes, at_least, slow, check);
  // Where ranks of one host exchange, nothing lies between them that could lose.
  const bool between_hosts = number_of_hosts(all) > 1;
  const bool counted = between_hosts && find_lossy_links(all, nodes, culprits, check);
  find_slow_links(rates, nodes, slow_for(all), gigabytes_sent(all), slow);
  check.figures.push_back({{"slowest exchange of a pair, against its fastest", "同一节点对中最慢与最快一次交换之比"},
                           unsteadiness(all),
                           "",
                           {},
                           {},
                           ""});
  if (accuse_of_rates(culprits, slow, all, check)) return;
  if (const auto dropped = between_hosts ? dropped_at_hosts(all, nodes) : std::nullopt) {
    check.outcome = Outcome::NotRun;
    check.reason = *dropped;
    return;
  }
  if (between_hosts && !at_least.contains("pair")) {
    const auto unknown = most_are_far_slower(rates, nodes, slow_for(all), gigabytes_sent(all));
    if (unknown) return leave_open(*unknown, all, check);
  }
  check.outcome = Outcome::Pass;
  const auto n = std::to_string(rates.size()), m = std::to_string(nodes.size());
  check.reason = {rates.size() == 1
                      ? "the one pair of " + m + " nodes exchanged right data"
                      : n + " pairs of " + m + " nodes exchanged right data, none far slower than the others",
                  m + " 个节点的 " + n + " 个节点对数据交换正确" + (rates.size() == 1 ? "" : "，没有明显较慢者")};
  if (!between_hosts) return;
  append(check.reason,
         counted ? Phrase{"no link loses packets", "没有丢包的链路"}
                 : Phrase{"lost packets were not counted, since no TCP that this kernel counts carried the data",
                          "未统计丢包：数据未经本内核可统计的 TCP 传输"});
}

}  // namespace sealift::verify
