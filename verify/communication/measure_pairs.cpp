// SPDX-License-Identifier: Apache-2.0
// Exchanges between two nodes at a time.
// See measure.hpp.
// In rounds of pairs that have nobody in common, so that each link is measured with its two ends to itself.
#include "verify/communication/host_drops.hpp"
#include "verify/communication/known_answers.hpp"
#include "verify/communication/measure.hpp"
#include "verify/communication/plan.hpp"
#include "verify/communication/rounds.hpp"
#include "verify/communication/tcp_counts.hpp"
#include "verify/communication/timing.hpp"
#include "verify/conduct/processors.hpp"
#include "verify/verdict/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kOneHostNodes = 16, kHostNodes = 256, kRoundsOfPairs = 31, kNameBytes = 256;

struct Nodes {
  std::vector<Phrase> names;
  std::vector<std::int64_t> ranks;
  std::int64_t hosts = 0;
};

/// Everyone's host; the first rank of each is a node, or of one host its ranks.
Nodes find_nodes(train::Collectives world, const std::string& host) {
  auto cards = at::zeros({world.size(), kNameBytes}, at::kByte);
  std::memcpy(cards[world.rank()].data_ptr(), host.c_str(), std::min<std::size_t>(host.size(), kNameBytes - 1));
  world.all_gather(cards, cards[world.rank()]).wait();
  Nodes firsts;
  for (std::int64_t rank = 0; rank < world.size(); ++rank) {
    const std::string name = static_cast<const char*>(cards[rank].data_ptr());
    if (std::find(firsts.names.begin(), firsts.names.end(), name) != firsts.names.end()) continue;
    firsts.names.push_back(name);
    firsts.ranks.push_back(rank);
  }
  firsts.hosts = static_cast<std::int64_t>(firsts.names.size());
  if (firsts.hosts > 1) {
    const auto kept = static_cast<std::size_t>(std::min(firsts.hosts, kHostNodes));
    firsts.names.resize(kept);
    firsts.ranks.resize(kept);
    return firsts;
  }
  Nodes ranks{.names = {}, .ranks = {}, .hosts = 1};
  for (std::int64_t rank = 0; rank < std::min(world.size(), kOneHostNodes); ++rank) {
    ranks.names.push_back({"rank " + std::to_string(rank), "进程 " + std::to_string(rank)});
    ranks.ranks.push_back(rank);
  }
  return ranks;
}

/// What some exchanges took, and what became of this rank's packets in them.
struct Exchanged {
  double best = 0, worst = 0;  ///< seconds
  PacketCounts packets;
  std::int64_t losing = 0;   ///< exchanges in which packets were lost
  std::int64_t dropped = 0;  ///< packets that this host's kernel dropped meanwhile
};

/// Exchanges with `peer`, a rank of the world, or none with -1: what came is checked.
class PairExchange {
 public:
  PairExchange(train::Collectives world, at::Device device, std::int64_t bytes, const CommunicationFaults& faults,
               Json& wrong)
      : world_(std::move(world)),
        device_(device),
        rows_(std::max<std::int64_t>(1, bytes / 4 / kRow)),
        faults_(faults),
        wrong_(wrong) {}

  std::int64_t bytes() const { return rows_ * kRow * 4; }

  Exchanged with(std::int64_t peer) {
    const auto rows = peer < 0 ? 0 : rows_;
    const auto options = at::TensorOptions().device(device_);
    const auto in = moved(world_.rank(), 0, rows * kRow, "fp32").to(at::kFloat).to(device_).view({rows, kRow});
    auto out = at::zeros({rows, kRow}, options);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world_.size()));
    if (peer >= 0) counts[static_cast<std::size_t>(peer)] = rows;
    Exchanged done;
    TcpCounts counts_of_packets;
    std::int64_t dropped_before = 0;
    // After the barrier this rank's peer has got all that was sent to it. The first exchange is not counted: in it TCP
    // finds out how much the path takes, which may cost some packets on any network.
    const auto count = [&](int exchange) {
      if (peer < 0 || exchange < 1) return;
      const auto packets = counts_of_packets.take();
      const auto dropped = dropped_by_host();
      const auto before = std::exchange(dropped_before, dropped);
      if (exchange < 2) return;
      done.dropped += dropped - before;
      done.packets.sent += packets.sent;
      done.packets.lost += packets.lost;
      done.losing += packets.lost > 0 ? 1 : 0;
    };
    for (int i = 0; i <= kExchanges; ++i) {
      world_.barrier();
      count(i);
      if (faults_.before) faults_.before("pair", in);
      const auto began = Clock::now();
      world_.all_to_all(out, in, counts, counts).wait();
      settle(out);
      const auto took = seconds_since(began);
      if (i == 0) continue;
      done.best = i == 1 ? took : std::min(done.best, took);
      done.worst = std::max(done.worst, took);
    }
    world_.barrier();
    count(kExchanges + 1);
    if (peer >= 0) check(out, peer);
    return done;
  }

  static constexpr int kExchanges = 5;  ///< that count

 private:
  static constexpr std::int64_t kRow = 256;

  void check(const at::Tensor& out, std::int64_t peer) {
    if (faults_.after) faults_.after("pair", out);
    const auto got = out.cpu().flatten().to(at::kDouble);
    const auto right = moved(peer, 0, got.numel(), "fp32").to(at::kDouble);
    const auto places = got.ne(right).nonzero();
    if (places.numel() == 0 || wrong_.size() >= kWrongElementsKept) return;
    const auto at = places[0].item<std::int64_t>();
    const auto value = got[at].item<double>();
    wrong_.push_back({{"group", "pair"},
                      {"ranks", 2},
                      {"op", "exchange"},
                      {"dtype", "fp32"},
                      {"size", got.numel()},
                      {"index", at},
                      {"from", peer},
                      {"got", std::isfinite(value) ? value : -1e300},
                      {"expected", right[at].item<double>()}});
  }

  train::Collectives world_;
  at::Device device_;
  std::int64_t rows_;
  const CommunicationFaults& faults_;
  Json& wrong_;
};

using Pair = std::pair<std::int64_t, std::int64_t>;

/// This rank's part in the tournament of nodes.
class Tournament {
 public:
  Tournament(train::Collectives world, const Nodes& nodes, PairExchange& exchange)
      : world_(std::move(world)),
        nodes_(nodes),
        exchange_(exchange),
        rounds_(rounds_of_pairs(static_cast<std::int64_t>(nodes.ranks.size()), kRoundsOfPairs)) {
    for (const auto& round : rounds_) play(round);
  }

  /// Who was slow once may have been without a processor: it meets again, and its best time counts. Collective.
  void repeat_slow_ones() {
    for (int again = 0; again < kRepeats; ++again) {
      const auto seconds = seconds_of_all();
      std::vector<double> all;
      for (const auto& [pair, took] : seconds) all.push_back(took);
      const double usual = usual_seconds(std::move(all));
      const auto is_slow = [&](const Pair& pair) { return seems_slow(seconds.at(pair), usual); };
      bool any = false;
      for (const auto& round : rounds_) {
        if (std::none_of(round.begin(), round.end(), is_slow)) continue;
        play(round);
        any = true;
      }
      if (!any) return;
    }
  }

  /// Of this rank, as judge_pairs takes them.
  Json pairs() const {
    auto list = Json::array();
    for (const auto& [pair, done] : mine_) {
      list.push_back({pair.first, pair.second, exchange_.bytes(), done.best, done.worst});
    }
    return list;
  }
  Json packets() const {
    auto list = Json::array();
    for (const auto& [pair, done] : mine_) {
      const bool first = rank_of(pair.first) == world_.rank();
      list.push_back({first ? pair.first : pair.second, first ? pair.second : pair.first, done.packets.sent,
                      done.packets.lost, done.losing, PairExchange::kExchanges, done.dropped});
    }
    return list;
  }

 private:
  static constexpr int kRepeats = 3;

  std::int64_t rank_of(std::int64_t node) const { return nodes_.ranks.at(static_cast<std::size_t>(node)); }

  void play(const Pairs& round) {
    std::int64_t peer = -1;
    Pair mine;
    for (const auto& [one, other] : round) {
      const auto left = rank_of(one), right = rank_of(other);
      if (left != world_.rank() && right != world_.rank()) continue;
      peer = left == world_.rank() ? right : left;
      mine = {one, other};
    }
    const auto done = exchange_.with(peer);
    if (peer < 0) return;
    // Packets are those of the first meeting: what is judged of them is their share in a number of exchanges.
    const auto [known, is_new] = mine_.emplace(mine, done);
    if (!is_new) known->second.best = std::min(known->second.best, done.best);
  }

  /// From the slower of a pair's two reports, the same on all ranks. Collective.
  std::map<Pair, double> seconds_of_all() {
    const auto n = static_cast<std::int64_t>(nodes_.ranks.size());
    auto table = at::zeros({n, n}, at::kDouble);  // above the diagonal one end writes, below it the other
    for (const auto& [pair, done] : mine_) {
      const bool first = rank_of(pair.first) == world_.rank();
      table[first ? pair.first : pair.second][first ? pair.second : pair.first] = done.best;
    }
    world_.all_reduce(table).wait();
    std::map<Pair, double> seconds;
    for (const auto& round : rounds_) {
      for (const auto& [one, other] : round) {
        seconds[{one, other}] = std::max(table[one][other].item<double>(), table[other][one].item<double>());
      }
    }
    return seconds;
  }

  train::Collectives world_;
  const Nodes& nodes_;
  PairExchange& exchange_;
  std::vector<Pairs> rounds_;
  std::map<Pair, Exchanged> mine_;
};

}  // namespace

Json measure_pairs(const Lines& lines, const std::string& host, std::int64_t bytes, const CommunicationFaults& faults) {
  const Processors processors;
  auto world = lines.groups.world;
  const auto nodes = find_nodes(world, host);
  Json wrong = Json::array();
  PairExchange exchange(world, lines.groups.device, bytes, faults, wrong);
  Tournament tournament(world, nodes, exchange);
  tournament.repeat_slow_ones();
  auto names = Json::array();
  for (const auto& name : nodes.names) names.push_back(Json(to_json(name)));
  return {{"cpu", lines.groups.device.is_cpu()},
          {"hosts", nodes.hosts},
          {"nodes", names},
          {"facts", facts_of_lines(lines)},
          {"pairs", tournament.pairs()},
          {"packets", tournament.packets()},
          {"faults", wrong},
          {"processors", processors.taken(2)}};  // a rank sends and receives at once
}

}  // namespace sealift::verify
