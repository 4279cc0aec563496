// SPDX-License-Identifier: Apache-2.0
// Counts of packets by pair of nodes, and who has to do with the losses.
// See lossy_links.hpp.
// A loss is seen by who sends, so each way of a link is counted on its own.
#include "verify/communication/lossy_links.hpp"

#include "verify/communication/all_ranks.hpp"
#include "verify/wording/numbers.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace sealift::verify {
namespace {

using Way = std::pair<std::size_t, std::size_t>;  ///< from, to

struct Losses {
  std::int64_t sent = 0, lost = 0, losing = 0, exchanges = 0;
  std::int64_t dropped = 0;  ///< by the receiver's kernel, and so not in `lost`
  double share() const { return sent > 0 ? static_cast<double>(lost) / static_cast<double>(sent) : 0; }
  bool too_many() const { return losing >= kLosingExchanges && lost >= kLostPackets && share() >= kLostShare; }
  bool too_many_with_dropped() const { return Losses{sent, lost + dropped, losing, exchanges}.too_many(); }
};

std::map<Way, Losses> losses_by_way(const std::vector<Measured>& all, std::size_t nodes) {
  std::map<Way, Losses> ways;
  std::map<Way, std::int64_t> dropped;  // by the first, while it received from the second
  for (const auto& measured : all) {
    if (!has_values(measured)) continue;
    for (const auto& way : measured.values.at("packets")) {
      const auto from = way.at(0).get<std::size_t>(), to = way.at(1).get<std::size_t>();
      if (from >= nodes || to >= nodes) throw std::invalid_argument("packets of a node that does not exist");
      const Losses losses{way.at(2), way.at(3), way.at(4), way.at(5)};
      dropped[{from, to}] = way.at(6);
      if (losses.sent > 0) ways[{from, to}] = losses;
    }
  }
  for (auto& [way, losses] : ways) {
    const auto found = dropped.find({way.second, way.first});
    if (found == dropped.end() || losses.lost <= 0) continue;
    losses.dropped = std::clamp<std::int64_t>(kMostJoined * found->second, 0, losses.lost);
    losses.lost -= losses.dropped;
  }
  return ways;
}

/// The worse way of each pair that loses too many.
std::map<Way, Way> lossy_pairs(const std::map<Way, Losses>& ways) {
  std::map<Way, Way> worse;
  for (const auto& [way, losses] : ways) {
    if (!losses.too_many()) continue;
    const auto [known, is_new] = worse.emplace(std::minmax(way.first, way.second), way);
    if (!is_new && losses.share() > ways.at(known->second).share()) known->second = way;
  }
  return worse;
}

std::size_t pairs_of(const std::set<Way>& pairs, std::size_t node) {
  return static_cast<std::size_t>(std::count_if(
      pairs.begin(), pairs.end(), [&](const Way& pair) { return pair.first == node || pair.second == node; }));
}

/// Draws who lost what where anything was lost, and says how much was counted.
void show(const std::map<Way, Losses>& ways, const std::vector<Phrase>& nodes, Check& check) {
  Matrix matrix{.title = {"packets lost on the way from row to column", "从行到列途中丢失的数据包"},
                .unit = "%",
                .rows = nodes,
                .columns = nodes,
                .values = std::vector<std::optional<double>>(nodes.size() * nodes.size())};
  double sent = 0, worst = 0;
  for (const auto& [way, losses] : ways) {
    const auto share = std::max(0.0, losses.share());
    matrix.values[way.first * nodes.size() + way.second] = share * 100;
    sent += static_cast<double>(losses.sent);
    worst = std::max(worst, share);
  }
  check.figures.push_back({{"packets counted", "统计的数据包数"}, sent, "", {}, {}, ""});
  check.figures.push_back({{"packets lost on the worst link", "丢包最多的链路的丢包率"}, worst * 100, "%", {}, {}, ""});
  if (worst > 0) check.matrices.push_back(std::move(matrix));
}

}  // namespace

bool find_lossy_links(const std::vector<Measured>& all, const std::vector<Phrase>& nodes, Culprits& culprits,
                      Check& check) {
  const auto ways = losses_by_way(all, nodes.size());
  if (ways.empty()) return false;
  show(ways, nodes, check);
  auto lossy = lossy_pairs(ways);
  std::set<Way> pairs;
  for (const auto& [way, losses] : ways) pairs.insert(std::minmax(way.first, way.second));
  if (nodes.size() > 2 && lossy.size() == pairs.size()) {
    for (const auto& node : nodes) {
      culprits.add(node, {"loses packets, as every pair of nodes does", "丢包，所有节点对均如此"});
    }
    lossy.clear();
  }
  while (nodes.size() > 2) {
    std::set<Way> left;
    for (const auto& [pair, way] : lossy) left.insert(pair);
    std::size_t worst = 0;
    for (std::size_t node = 1; node < nodes.size(); ++node) {
      if (pairs_of(left, node) > pairs_of(left, worst)) worst = node;
    }
    const auto with = pairs_of(left, worst), of = pairs_of(pairs, worst);
    if (with < 2 || 2 * with <= of) break;
    double most = 0;
    for (const auto& [pair, way] : lossy) {
      if (pair.first == worst || pair.second == worst) most = std::max(most, ways.at(way).share());
    }
    const auto n = std::to_string(with), m = std::to_string(of), share = percent_text(most);
    culprits.add(nodes[worst], {"loses packets with " + n + " of " + m + " other nodes, up to " + share + " of them",
                                "与 " + m + " 个其他节点中的 " + n + " 个之间丢包，最多 " + share});
    std::erase_if(lossy, [&](const auto& item) { return item.first.first == worst || item.first.second == worst; });
  }
  for (const auto& [pair, way] : lossy) {
    const auto& losses = ways.at(way);
    const auto share = percent_text(losses.share()), sent = std::to_string(losses.sent);
    const auto times = std::to_string(losses.losing), of = std::to_string(losses.exchanges);
    const auto &from = nodes[way.first], &to = nodes[way.second];
    culprits.add(pair_of(nodes[pair.first], nodes[pair.second]),
                 {"lose " + share + " of " + sent + " packets from " + from.en + " to " + to.en + ", in " + times +
                      " of " + of + " exchanges",
                  "从 " + from.zh + " 到 " + to.zh + " 的 " + sent + " 个数据包丢失 " + share + "，" + of +
                      " 次交换中有 " + times + " 次"});
  }
  return true;
}

std::optional<Phrase> dropped_at_hosts(const std::vector<Measured>& all, const std::vector<Phrase>& nodes) {
  std::optional<std::pair<Way, Losses>> worst;
  for (const auto& [way, losses] : losses_by_way(all, nodes.size())) {
    if (losses.too_many() || !losses.too_many_with_dropped()) continue;
    if (!worst || losses.dropped > worst->second.dropped) worst = {way, losses};
  }
  if (!worst) return std::nullopt;
  const auto dropped = std::to_string(worst->second.dropped), sent = std::to_string(worst->second.sent);
  const auto &from = nodes[worst->first.first], &to = nodes[worst->first.second];
  return Phrase{
      "the machine was busy: of " + sent + " packets from " + from.en + " the kernel of " + to.en + " dropped up to " +
          dropped + " itself, for want of a processor or of room in a socket " +
          "(/proc/net/softnet_stat, /proc/net/netstat), so nobody is named for lost packets; run again " +
          "when it does nothing else",
      "机器繁忙：" + from.zh + " 发来的 " + sent + " 个数据包中，最多有 " + dropped + " 个被 " + to.zh +
          " 的内核丢弃（处理器来不及处理或套接字缓冲区已满，见 /proc/net/softnet_stat 与 /proc/net/netstat），" +
          "因此不因丢包认定任何一方；请在没有其他任务时重新运行"};
}

}  // namespace sealift::verify
