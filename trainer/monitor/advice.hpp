// SPDX-License-Identifier: Apache-2.0
// The 30 % rule: what to change when ranks wait for each other for too much of a step.
// The monitor says it while the run goes on and in result.json.
// By what the ranks waited for and by the settings that they have, so that no remedy is named that is in use.
#pragma once

#include <sealift/train/policy.hpp>

#include <cmath>
#include <optional>
#include <sstream>

namespace sealift::trainer {

/// Above this share of a step, communication that computation does not hide means that a rank computes too little
/// between two collectives, or that the network is too slow.
constexpr double kMuchCommunication = 0.3;

/// Shares of a step, from 0 to 1, that computation did not hide.
struct ExposedShare {
  double gather = 0, reduce = 0;  ///< waiting for parameters, and for gradients

  double whole() const { return gather + reduce; }
};

/// Whole shares over the ranks.
struct RankShares {
  double least = 0, most = 0;
  std::int64_t least_rank = 0;
};

/// Advice when `share` is above the rule's; `ranks`: unset where only one rank's share is known.
inline std::optional<std::string> communication_advice(const ExposedShare& share, const train::Policy& policy,
                                                       std::int64_t micro_batches,
                                                       const std::optional<RankShares>& ranks = {}) {
  if (share.whole() <= kMuchCommunication) return std::nullopt;
  const auto percent = [](double part) { return std::to_string(std::lround(part * 100)) + " %"; };
  std::ostringstream text;
  text << "waiting for communication takes " << percent(share.whole()) << " of a step (parameters "
       << percent(share.gather) << ", gradients " << percent(share.reduce) << "; more than "
       << percent(kMuchCommunication) << " is too much): ";
  if (ranks && ranks->most > 2 * ranks->least && ranks->most - ranks->least > 0.1) {
    text << "ranks wait unevenly, from " << percent(ranks->least) << " on rank " << ranks->least_rank << " to "
         << percent(ranks->most) << ", and the rank that waits least is the slowest: look at its host first; then ";
  }
  const bool sharded = policy.method == train::ParallelMethod::Fsdp || policy.method == train::ParallelMethod::Hsdp;
  if (micro_batches > 1 && policy.reduce_every_micro_batch) text << "set reduce_every_micro_batch = false; ";
  text << (micro_batches > 1 ? "raise global_batch" : "raise global_batch, or with it micro_batches to accumulate");
  if (sharded && share.gather >= share.reduce) {
    if (policy.forward_prefetch == 0 || policy.backward_prefetch == 0)
      text << "; gather ahead with forward_prefetch and backward_prefetch";
    if (policy.reshard_after_forward)
      text << "; where memory allows, keep units until backward: sharding_strategy = \"SHARD_GRAD_OP\"";
    text << "; make larger units: wrapping_strategy = \"by_block_group\"";
  }
  if (policy.method == train::ParallelMethod::Fsdp)
    text << "; shard within a host only: hsdp; or ddp, if the model fits one device";
  text << "; or use a faster network";
  return text.str();
}

}  // namespace sealift::trainer
