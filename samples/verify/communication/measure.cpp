// SPDX-License-Identifier: Apache-2.0
// Collectives with known answers, and their times.
// See measure.hpp.
// Answers are computed here from the numbers of the ranks, never from what another rank said.
#include "communication/measure.hpp"

#include "communication/nccl_log.hpp"
#include "communication/plan.hpp"
#include "run/check_kind.hpp"

#include <cstdlib>
#include <set>
#include <thread>

namespace sealift::verify {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kFaultsKept = 32;
constexpr std::int64_t kOneHostNodes = 16, kHostNodes = 256, kRoundsOfPairs = 31, kNameBytes = 256;
constexpr std::int64_t kElementsOfAll = 1 << 22;  ///< of all parts of one case together

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// Until the device has done what was asked for.
void settle(const at::Tensor& tensor) {
  if (tensor.is_cuda() && tensor.numel() > 0) tensor.flatten()[0].item();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

at::ScalarType dtype_named(const std::string& name) {
  if (name == "bf16") return at::kBFloat16;
  if (name == "fp16") return at::kHalf;
  return name == "int64" ? at::kLong : at::kFloat;
}

/// int64 [n]: what `rank` sends from its element `first` on, where data only moves.
at::Tensor moved(std::int64_t rank, std::int64_t first, std::int64_t n, const std::string& dtype) {
  return at::arange(first, first + n, at::kLong)
      .mul_(kOfIndex)
      .add_(rank * kOfRank)
      .remainder_(modulus_of_moves(dtype));
}

/// int64 [n]: what `rank` of `ranks` adds.
at::Tensor added(std::int64_t rank, std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype) {
  const auto modulus = modulus_of_sums(dtype, ranks);
  auto index = at::arange(first, first + n, at::kLong);
  if (modulus > 1) return index.mul_(kOfIndex).add_(rank * kOfRank).remainder_(modulus);
  return index.add_(rank).remainder_(one_in(dtype, ranks)).eq(0).to(at::kLong);
}

at::Tensor sum_of_all(std::int64_t ranks, std::int64_t first, std::int64_t n, const std::string& dtype) {
  auto sum = at::zeros({n}, at::kLong);
  for (std::int64_t rank = 0; rank < ranks; ++rank) sum += added(rank, ranks, first, n, dtype);
  return sum;
}

std::vector<std::int64_t> members_of(const train::Collectives& group) {
  return group.members();
}

Json facts_of(const Lines& lines) {
  Json facts = Json::array();
  facts.push_back({"engine", lines.groups.device.is_cuda() ? "NCCL, and Gloo for what is on the host" : "Gloo"});
  facts.push_back({"mesh", lines.groups.mesh.text()});
  for (const auto* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_NET",
                           "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_ALGO", "NCCL_PROTO"}) {
    if (const char* value = std::getenv(name)) facts.push_back({name, value});
  }
  if (!lines.groups.device.is_cuda()) return facts;
  for (const auto& [name, value] : facts_of_own_nccl_log()) facts.push_back({name, value});
  return facts;
}

/// The cases of one line with one dtype, and what was wrong in them.
class RightCases {
 public:
  RightCases(const Line& line, at::Device device, const CommunicationFaults& faults, Json& wrong)
      : line_(line),
        group_(line.group),
        device_(device),
        faults_(faults),
        wrong_(wrong),
        rank_(group_.rank()),
        ranks_(group_.size()) {}

  std::int64_t run(const std::string& dtype, std::int64_t size) {
    dtype_ = dtype;
    size_ = size;
    all_reduce(size);
    size_ = std::min(size, std::max<std::int64_t>(1, kElementsOfAll / ranks_));
    reduce_scatter(size_);
    all_gather(size_);
    broadcast(size);
    all_to_all(size_);
    return 5;
  }

  /// Everyone must wait for who comes last. Tried three times, since a rank that the host does not run looks the same.
  std::int64_t barrier() {
    constexpr auto kSleep = std::chrono::milliseconds(100);
    for (int attempt = 0; attempt < 3; ++attempt) {
      auto waited = at::zeros({ranks_});
      group_.all_gather(waited, at::zeros({1})).wait();
      const auto began = Clock::now();
      if (rank_ == 0) std::this_thread::sleep_for(kSleep);
      group_.barrier();
      const auto mine = at::full({1}, rank_ == 0 ? 1 : seconds_since(began), at::kFloat);
      group_.all_gather(waited, mine).wait();
      if (waited.min().item<double>() > 0.02) break;
      if (attempt == 2 && mine.item<double>() <= 0.02) note("barrier", "fp32", 1, -1, mine.item<double>(), 0.1, 0);
    }
    return 1;
  }

 private:
  at::Tensor here(const at::Tensor& values) const { return values.to(dtype_named(dtype_)).to(device_); }
  void before(const char* op, const at::Tensor& sent) const {
    if (faults_.before) faults_.before(op, sent);
  }

  void all_reduce(std::int64_t n) {
    auto data = here(added(rank_, ranks_, 0, n, dtype_));
    before("all_reduce", data);
    group_.all_reduce(data).wait();
    compare("all_reduce", data, sum_of_all(ranks_, 0, n, dtype_), {});
  }

  void reduce_scatter(std::int64_t n) {
    const auto full = here(added(rank_, ranks_, 0, ranks_ * n, dtype_));
    auto part = at::full({n}, 99, full.options());
    before("reduce_scatter", full);
    group_.reduce_scatter(part, full).wait();
    compare("reduce_scatter", part, sum_of_all(ranks_, rank_ * n, n, dtype_), {});
  }

  void all_gather(std::int64_t n) {
    const auto part = here(moved(rank_, 0, n, dtype_));
    auto full = at::full({ranks_ * n}, 99, part.options());
    before("all_gather", part);
    group_.all_gather(full, part).wait();
    std::vector<at::Tensor> expected;
    for (std::int64_t peer = 0; peer < ranks_; ++peer) expected.push_back(moved(peer, 0, n, dtype_));
    compare("all_gather", full, at::cat(expected), std::vector<std::int64_t>(static_cast<std::size_t>(ranks_), n));
  }

  void broadcast(std::int64_t n) {
    auto data = here(moved(rank_, 0, n, dtype_));
    before("broadcast", data);
    group_.broadcast(data).wait();
    compare("broadcast", data, moved(0, 0, n, dtype_), {n});
  }

  /// Parts of different sizes, as experts send them.
  void all_to_all(std::int64_t n) {
    std::vector<at::Tensor> sent, expected;
    std::vector<std::int64_t> rows;
    for (std::int64_t peer = 0; peer < ranks_; ++peer) {
      rows.push_back(n + (rank_ + peer) % 3);
      sent.push_back(moved(rank_, peer * 4099, rows.back(), dtype_));
      expected.push_back(moved(peer, rank_ * 4099, rows.back(), dtype_));
    }
    const auto in = here(at::cat(sent));
    auto out = at::full_like(in, 99);
    before("all_to_all", in);
    group_.all_to_all(out, in, rows, rows).wait();
    compare("all_to_all", out, at::cat(expected), rows);
  }

  /// `parts`: how many elements came from each rank of the group, in order; none: a sum.
  void compare(const char* op, const at::Tensor& got, const at::Tensor& expected,
               const std::vector<std::int64_t>& parts) {
    settle(got);
    if (faults_.after) faults_.after(op, got);
    const auto mine = got.cpu().to(at::kDouble), right = expected.to(at::kDouble);
    if (mine.equal(right)) return;
    const auto differ = mine.ne(right);
    std::int64_t first = 0;
    for (std::size_t peer = 0; peer < std::max<std::size_t>(1, parts.size()); ++peer) {
      const auto n = parts.empty() ? mine.numel() : parts[peer];
      const auto places = differ.narrow(0, first, n).nonzero();
      if (places.numel() > 0) {
        const auto at = places[0].item<std::int64_t>();
        note(op, dtype_, size_, parts.empty() ? -1 : members_of(group_).at(peer), mine[first + at].item<double>(),
             right[first + at].item<double>(), at);
      }
      first += n;
    }
  }

  void note(const std::string& op, const std::string& dtype, std::int64_t size, std::int64_t from, double got,
            double expected, std::int64_t index) {
    if (wrong_.size() >= kFaultsKept) return;
    wrong_.push_back({{"group", line_.name},
                      {"ranks", ranks_},
                      {"op", op},
                      {"dtype", dtype},
                      {"size", size},
                      {"index", index},
                      {"from", from},
                      {"got", std::isfinite(got) ? got : -1e300},
                      {"expected", expected}});
  }

  const Line& line_;
  train::Collectives group_;
  at::Device device_;
  const CommunicationFaults& faults_;
  Json& wrong_;
  std::int64_t rank_, ranks_, size_ = 0;
  std::string dtype_;
};

/// Times of one collective over one line.
class Stopwatch {
 public:
  Stopwatch(const Line& line, at::Device device, const CommunicationFaults& faults)
      : group_(line.group), device_(device), faults_(faults) {}

  /// Seconds inside the call: the median of some, after one that is not counted.
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
    const auto times = std::clamp<std::int64_t>((std::int64_t{32} << 20) / bytes, 3, 15);
    std::vector<double> seconds;
    group_.barrier();
    for (std::int64_t i = 0; i <= times; ++i) {
      if (faults_.before) faults_.before(op, whole);
      const auto began = Clock::now();
      call().wait();
      settle(op == "reduce_scatter" ? piece : op == "all_to_all" ? out : whole);
      if (i > 0) seconds.push_back(seconds_since(began));
    }
    return median(seconds);
  }

  double of_barrier() {
    std::vector<double> seconds;
    for (int i = 0; i < 9; ++i) {
      const auto began = Clock::now();
      group_.barrier();
      seconds.push_back(seconds_since(began));
    }
    return median(seconds);
  }

 private:
  train::Collectives group_;
  at::Device device_;
  const CommunicationFaults& faults_;
};

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
    if (places.numel() == 0 || wrong_.size() >= kFaultsKept) return;
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

Lines make_lines(const train::Groups& world, std::int64_t local) {
  if (!world.connections) {
    throw NotRun({"one rank has nobody to talk to", "只有一个进程，没有通信对象"});
  }
  const auto [outer, inner] = mesh_of(world.world.size(), local);
  Lines lines{.groups = train::make_groups(world.connections->world, train::Mesh(outer, inner)), .all = {}};
  lines.all.push_back({"world", lines.groups.world});
  if (outer > 1 && inner > 1) {
    lines.all.push_back({"replicate", lines.groups.replicate});
    lines.all.push_back({"shard", lines.groups.shard});
  }
  return lines;
}

Json measure_right(const Lines& lines, const std::vector<std::int64_t>& sizes, const CommunicationFaults& faults) {
  Json wrong = Json::array();
  std::int64_t cases = 0;
  for (const auto& line : lines.all) {
    RightCases right(line, lines.groups.device, faults, wrong);
    for (const auto* dtype : {"fp32", "bf16", "fp16", "int64"}) {
      for (const auto size : sizes) cases += right.run(dtype, size);
    }
    cases += right.barrier();
  }
  return {{"cases", cases}, {"facts", facts_of(lines)}, {"faults", wrong}};
}

Json measure_right_for(const Lines& lines, const std::vector<std::int64_t>& sizes,
                       std::chrono::duration<double> duration, const CommunicationFaults& faults) {
  const auto began = Clock::now();
  auto world = lines.groups.world;
  auto total = measure_right(lines, sizes, faults);
  while (true) {
    const bool more = seconds_since(began) < duration.count() && total["faults"].empty();
    auto go = at::full({1}, more ? 1 : 0, at::kLong);  // rank 0's answer is everyone's
    world.broadcast(go).wait();
    if (go.item<std::int64_t>() == 0) return total;
    const auto again = measure_right(lines, sizes, faults);
    total["cases"] = total["cases"].get<std::int64_t>() + again["cases"].get<std::int64_t>();
    if (total["faults"].empty()) total["faults"] = again["faults"];
  }
}

Json measure_bandwidth(const Lines& lines, const std::vector<std::int64_t>& bytes, const CommunicationFaults& faults) {
  const auto device = lines.groups.device;
  Json curves = Json::array();
  for (const auto& line : lines.all) {
    Stopwatch watch(line, device, faults);
    for (const auto& op : kCollectives) {
      Json points = Json::array();
      for (const auto size : bytes) points.push_back({size, watch.of(op, size)});
      curves.push_back({{"group", line.name}, {"members", members_of(line.group)}, {"op", op}, {"points", points}});
    }
  }
  Stopwatch watch(lines.all.front(), device, faults);
  const auto wait = watch.of("all_reduce", 1024);
  return {{"cpu", device.is_cpu()},
          {"facts", facts_of(lines)},
          {"curves", curves},
          {"wait", wait},
          {"barrier", watch.of_barrier()}};
}

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
  return {{"cpu", lines.groups.device.is_cpu()},
          {"hosts", nodes.hosts},
          {"nodes", nodes.names},
          {"facts", facts_of(lines)},
          {"pairs", pairs},
          {"faults", wrong}};
}

}  // namespace sealift::verify
