// SPDX-License-Identifier: Apache-2.0
// `parallel_method auto`: ddp, hsdp or fsdp, by what the job takes on a rank and what memory is there.
// Asked by `fine_tune` between connecting and making the mesh; plan/auto_method.hpp chooses.
// Activations are counted for the job's own batch, so nothing is left to a part that nobody knows.
#pragma once

#include "plan/auto_method.hpp"
#include "plan/meta_shape.hpp"

namespace sealift::trainer {

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

/// Chooses for the candidate's model in a world of `ranks` of which each host has `ranks_of_host`; `free`: bytes of a
/// rank, 0 where they are unknown.
inline plan::Chosen choose_method(const plan::Candidate& candidate, const plan::Way& asked, std::int64_t ranks,
                                  std::int64_t ranks_of_host, std::int64_t free, at::Device device) {
  plan::Machine machine;
  const bool divides = ranks_of_host > 0 && ranks % ranks_of_host == 0;
  machine.cards = divides ? ranks_of_host : ranks;
  machine.hosts = ranks / machine.cards;
  machine.memory = free;
  if (device.is_cpu()) {  // rates of no machine in particular: what computes slowly hides what it sends
    machine.flops = 50e9;
    machine.link = machine.network = 2e9;
    machine.memory_rate = 10e9;
  }
  return plan::choose_method(candidate, asked, machine, device.is_cpu() ? plan::Kernels::Host : plan::Kernels::Cuda);
}

}  // namespace sealift::trainer
