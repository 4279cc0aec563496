// SPDX-License-Identifier: Apache-2.0
// A dense decoder on a cluster of many ranks as a shape and rates: what the curves of docs/simulate.md are drawn from.
// Ring formulas for what a rank sends; latency grows with the ranks of a ring; hosts with a fast network inside.
// Counts of a configuration, not of a model that is built, so that no weights are needed for 1,024 ranks.
#pragma once

#include "tests/train/simulate/chart.hpp"
#include "trainer/simulate/step_time.hpp"

namespace sealift::trainer {

/// Sizes of a decoder with grouped attention and a gated feed-forward, as config.json has them; the head is untied.
struct DenseModel {
  std::string name;
  std::int64_t layers = 0, hidden = 0, intermediate = 0, heads = 0, key_value_heads = 0, vocabulary = 0;

  /// Elements of one layer, and of the root: embedding, head and last norm.
  std::int64_t layer_parameters() const;
  std::int64_t root_parameters() const { return 2 * vocabulary * hidden + hidden; }
  std::int64_t parameters() const { return layers * layer_parameters() + root_parameters(); }
};

/// Hosts with ranks that have a fast network between them, and a slower one to other hosts.
struct Cluster {
  std::int64_t ranks_per_host = 8;
  double flops = 4e14;                                 ///< that a rank reaches while it computes
  double host_bytes_per_second = 4e11;                 ///< of a rank's collectives within a host
  double bytes_per_second = 5e10;                      ///< ... that leave it, each rank at once
  double host_hop_seconds = 1e-6, hop_seconds = 3e-6;  ///< of one step of a ring
  double memory_bytes_per_second = 3e12;
};

/// What each rank does in a step. Parameters are gathered in 2 bytes, gradients reduced in 4.
struct ScaledJob {
  std::int64_t tokens = 8192;  ///< of one micro-batch
  std::int64_t context = 8192;
  std::int64_t micro_batches = 1;
  bool recompute = true;
  std::int64_t shard = 0;  ///< ranks that share one copy: 0 all (fsdp), 1 none (ddp), else hsdp
};

struct ScaledStep {
  StepShape shape;
  Rates rates;
  double state_bytes = 0;  ///< fp32 parameters, gradients and two moments of a rank
};

/// Throws std::invalid_argument unless `shard` divides `ranks`, and hosts are full or there is one.
ScaledStep scaled_step(const DenseModel& model, const Cluster& cluster, const ScaledJob& job, std::int64_t ranks);

/// Tokens of a rank in a second, as percent of its tokens if nothing were sent: at each of `worlds`.
Curve scaling_curve(const std::string& name, const DenseModel& model, const Cluster& cluster, const ScaledJob& job,
                    const std::vector<std::int64_t>& worlds);

}  // namespace sealift::trainer
