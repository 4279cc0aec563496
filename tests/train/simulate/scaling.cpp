// SPDX-License-Identifier: Apache-2.0
// The scaled step.
// See scaling.hpp. Formulas: 2 operations per parameter and token forward, causal attention 2 context hidden per layer
// and token, backward twice that, recompute once more; a ring of n sends (n - 1) / n of a buffer and has n - 1 hops.
// What an all-reduce sends is a ring's too; its hops are a tree's, which NCCL prefers where a ring's would cost more.
#include "tests/train/simulate/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sealift::trainer {
namespace {

constexpr std::int64_t kGatherBytes = 2, kReduceBytes = 4, kStateBytes = 16;
/// AdamW reads a parameter, its gradient and two moments and writes all but the gradient; the norm reads once more.
constexpr std::int64_t kOptimizerBytes = 4 * (4 + 3 + 1);

/// What each of `ranks` sends of a buffer of `bytes`.
std::int64_t sent(std::int64_t bytes, std::int64_t ranks) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(ranks - 1) /
                                   static_cast<double>(ranks));
}

/// A network as a group of ranks sees it.
struct Ring {
  double bytes_per_second = 0, latency = 0;
};

/// Seconds that an all-reduce waits for its hops: up and down a tree over the hosts, as NCCL chooses for many ranks.
double tree_latency(const Cluster& cluster, std::int64_t hosts) {
  return 2 * std::ceil(std::log2(static_cast<double>(hosts))) * cluster.hop_seconds;
}

/// A ring over `ranks`, of which neighbours share a host.
Ring ring(const Cluster& cluster, std::int64_t ranks) {
  const auto hosts = std::max<std::int64_t>(1, ranks / cluster.ranks_per_host);
  const auto hops = static_cast<double>(ranks - 1), far = hosts > 1 ? static_cast<double>(hosts) : 0;
  return {hosts > 1 ? cluster.bytes_per_second : cluster.host_bytes_per_second,
          far * cluster.hop_seconds + (hops - far) * cluster.host_hop_seconds};
}

/// The sums of ddp over all ranks: within a host a ring there and back.
Ring all_reduce(const Cluster& cluster, std::int64_t ranks) {
  const auto inside = std::min(ranks, cluster.ranks_per_host);
  const auto host_hops = 2 * static_cast<double>(inside - 1) * cluster.host_hop_seconds;
  return {ring(cluster, ranks).bytes_per_second, host_hops + tree_latency(cluster, ranks / inside)};
}

UnitWork work_of(std::int64_t parameters, double forward, const ScaledJob& job, std::int64_t shard,
                 std::int64_t copies) {
  UnitWork unit;
  unit.forward_flops = forward;
  unit.backward_flops = forward * (job.recompute ? 3 : 2);
  if (shard > 1) {
    unit.gather_bytes = sent(kGatherBytes * parameters, shard);
    unit.reduce_bytes = sent(kReduceBytes * parameters, shard);
    unit.copies_bytes = 2 * sent(kReduceBytes * parameters / shard, copies);
  } else {
    unit.reduce_bytes = 2 * sent(kReduceBytes * parameters, copies);
  }
  return unit;
}

void check(const Cluster& cluster, std::int64_t ranks, std::int64_t shard) {
  const bool fits = ranks >= 1 && shard >= 1 && ranks % shard == 0;
  const bool hosts = ranks <= cluster.ranks_per_host || ranks % cluster.ranks_per_host == 0;
  if (fits && hosts) return;
  throw std::invalid_argument("scaling: " + std::to_string(ranks) + " ranks of which " + std::to_string(shard) +
                              " share a copy, on hosts of " + std::to_string(cluster.ranks_per_host) +
                              "; expected shares and hosts that divide the ranks");
}

}  // namespace

std::int64_t DenseModel::layer_parameters() const {
  const auto key_values = hidden / heads * key_value_heads;
  return hidden * (2 * hidden + 2 * key_values) + 3 * hidden * intermediate + 2 * hidden;
}

ScaledStep scaled_step(const DenseModel& model, const Cluster& cluster, const ScaledJob& job, std::int64_t ranks) {
  const auto shard = job.shard == 0 ? ranks : job.shard;
  check(cluster, ranks, shard);
  const auto copies = ranks / shard;
  const auto tokens = static_cast<double>(job.tokens);
  ScaledStep step;
  auto& shape = step.shape;
  const auto head = 2.0 * tokens * static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
  shape.units.push_back(work_of(model.root_parameters(), head, job, shard, copies));
  const auto attention = 2.0 * static_cast<double>(job.context) * static_cast<double>(model.hidden);
  const auto layer = tokens * (2.0 * static_cast<double>(model.layer_parameters()) + attention);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    shape.units.push_back(work_of(model.layer_parameters(), layer, job, shard, copies));
  }
  shape.units.front().backward_flops = 2 * head;  // the head is not recomputed
  shape.micro_batches = job.micro_batches;
  shape.optimizer_bytes = kOptimizerBytes * model.parameters() / shard;
  shape.small_collectives = 2;
  if (shard == 1) shape.bucket_bytes = 2 * 25 * 1024 * 1024;
  if (shard == 1) shape.first_bucket_bytes = 2 * 1024 * 1024;

  const auto main = shard > 1 ? ring(cluster, shard) : all_reduce(cluster, ranks);
  step.rates.flops = cluster.flops;
  step.rates.link_bytes_per_second = main.bytes_per_second;
  step.rates.link_latency_seconds = main.latency;
  step.rates.memory_bytes_per_second = cluster.memory_bytes_per_second;
  // Where shards lie within a host, only sums over copies use the network; else both do.
  if (shard > 1 && copies > 1 && shard <= cluster.ranks_per_host) {
    step.rates.copies_bytes_per_second = cluster.bytes_per_second;
    step.rates.copies_latency_seconds = tree_latency(cluster, copies);
  }
  step.state_bytes = static_cast<double>(kStateBytes * model.parameters()) / static_cast<double>(shard);
  return step;
}

Curve scaling_curve(const std::string& name, const DenseModel& model, const Cluster& cluster, const ScaledJob& job,
                    const std::vector<std::int64_t>& worlds) {
  Curve curve{.name = name, .points = {}};
  for (const auto ranks : worlds) {
    const auto [shape, rates, state] = scaled_step(model, cluster, job, ranks);
    const auto time = simulate(shape, rates);
    curve.points.emplace_back(static_cast<double>(ranks), 100 * (time.compute + time.optimizer) / time.seconds);
  }
  return curve;
}

}  // namespace sealift::trainer
