// SPDX-License-Identifier: Apache-2.0
// Exchanges between two nodes at a time.
// See measure.hpp.
// In rounds of pairs that have nobody in common, so that each link is measured with its two ends to itself.
#include "communication/known_answers.hpp"
#include "communication/measure.hpp"
#include "communication/plan.hpp"
#include "communication/timing.hpp"

#include <cmath>
#include <cstring>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kOneHostNodes = 16, kHostNodes = 256, kRoundsOfPairs = 31, kNameBytes = 256;

struct Nodes {
  std::vector<std::string> names;
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
    ranks.names.push_back("rank " + std::to_string(rank));
    ranks.ranks.push_back(rank);
  }
  return ranks;
}

/// One exchange with `peer`, a rank of the world, or none with -1: what came is checked, the fastest time returned.
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

  double with(std::int64_t peer) {
    const auto rows = peer < 0 ? 0 : rows_;
    const auto options = at::TensorOptions().device(device_);
    const auto in = moved(world_.rank(), 0, rows * kRow, "fp32").to(at::kFloat).to(device_).view({rows, kRow});
    auto out = at::zeros({rows, kRow}, options);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(world_.size()));
    if (peer >= 0) counts[static_cast<std::size_t>(peer)] = rows;
    double best = 0;
    for (int i = 0; i < 6; ++i) {
      if (faults_.before) faults_.before("pair", in);
      world_.barrier();
      const auto began = Clock::now();
      world_.all_to_all(out, in, counts, counts).wait();
      settle(out);
      const auto took = seconds_since(began);
      if (i > 0 && (best == 0 || took < best)) best = took;
    }
    if (peer >= 0) check(out, peer);
    return best;
  }

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

}  // namespace

Json measure_pairs(const Lines& lines, const std::string& host, std::int64_t bytes, const CommunicationFaults& faults) {
  auto world = lines.groups.world;
  const auto nodes = find_nodes(world, host);
  Json wrong = Json::array(), pairs = Json::array();
  PairExchange exchange(world, lines.groups.device, bytes, faults, wrong);
  for (const auto& round : rounds_of_pairs(static_cast<std::int64_t>(nodes.ranks.size()), kRoundsOfPairs)) {
    std::int64_t peer = -1;
    std::pair<std::int64_t, std::int64_t> mine;
    for (const auto& [one, other] : round) {
      const auto left = nodes.ranks.at(static_cast<std::size_t>(one)),
                 right = nodes.ranks.at(static_cast<std::size_t>(other));
      if (left != world.rank() && right != world.rank()) continue;
      peer = left == world.rank() ? right : left;
      mine = {one, other};
    }
    const auto seconds = exchange.with(peer);
    if (peer >= 0) pairs.push_back({mine.first, mine.second, exchange.bytes(), seconds});
  }
  return {{"cpu", lines.groups.device.is_cpu()}, {"hosts", nodes.hosts}, {"nodes", nodes.names},
          {"facts", facts_of_lines(lines)},      {"pairs", pairs},       {"faults", wrong}};
}

}  // namespace sealift::verify
