// SPDX-License-Identifier: Apache-2.0
// `parallel_method auto`: ddp, hsdp or fsdp, by what the model takes on a rank and what memory is there.
// Asked by `fine_tune` between connecting and making the mesh; the formula is tuning_memory's.
// The method that sends least is taken of those that leave enough for activations, which nobody knows beforehand.
#pragma once

#include "tuning/qlora.hpp"

#include <sstream>

namespace sealift::trainer {

/// The part of a rank's free memory that parameters, gradients, moments and gathered units may take.
inline constexpr double kModelsPart = 0.6;

/// Bytes that are free for the rank with the least, the same on all ranks; ranks share the memory of a host without
/// GPUs. 0: unknown. Collective.
inline std::int64_t least_free_memory(const train::World& world, at::Device device, std::int64_t ranks_of_host) {
  const auto mine = train::free_memory(device) / (device.is_cpu() ? ranks_of_host : 1);
  if (world.size == 1) return mine;
  world.store->set("free_memory/" + std::to_string(world.rank), std::to_string(mine));
  auto least = mine;
  for (std::int64_t rank = 0; rank < world.size; ++rank) {
    const auto theirs = world.store->get_to_str("free_memory/" + std::to_string(rank));
    least = std::min(least, static_cast<std::int64_t>(std::atoll(theirs.c_str())));
  }
  return least;
}

struct MethodChoice {
  std::string method;
  std::int64_t shard_size = 0;  ///< of hsdp
  std::string reason;           ///< one line, for a log
};

/// Chooses for `model`, on the meta device, in a world of `ranks` of which each host has `ranks_of_host`. `policy`:
/// what the job says besides; `free`: bytes of a rank, 0 where they are unknown.
inline MethodChoice choose_method(torch::nn::Module& model, train::Policy policy, std::int64_t ranks,
                                  std::int64_t ranks_of_host, std::int64_t free) {
  if (ranks == 1) return {"none", 0, "parallel_method auto: none, since there is one rank"};
  using train::ParallelMethod;
  std::vector<std::pair<ParallelMethod, std::int64_t>> candidates{{ParallelMethod::Ddp, 0}};
  if (ranks_of_host > 1 && ranks_of_host < ranks && ranks % ranks_of_host == 0) {
    candidates.emplace_back(ParallelMethod::Hsdp, ranks_of_host);
  }
  candidates.emplace_back(ParallelMethod::Fsdp, 0);
  const auto mebibytes = [](std::int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  const auto budget = static_cast<std::int64_t>(kModelsPart * static_cast<double>(free));
  std::ostringstream others;
  for (const auto& [method, shard_size] : candidates) {
    policy.method = method;
    policy.shard_size = shard_size;
    const auto needed = tuning_memory(model, policy, ranks).sum();
    const bool last = method == ParallelMethod::Fsdp;
    const std::string name(train::to_string(method));
    if (!last && (free == 0 || needed > budget)) {
      others << name << " would take " << mebibytes(needed) << ", ";
      continue;
    }
    return {name, shard_size,
            "parallel_method auto: " + name + ", which takes " + mebibytes(needed) +
                " of a rank without activations; " + others.str() + "of " +
                (free == 0 ? "an unknown amount" : mebibytes(free) + " that are free") +
                " at most 60 % is for the model"};
  }
  TORCH_CHECK(false, "fsdp is always a choice");
}

}  // namespace sealift::trainer
