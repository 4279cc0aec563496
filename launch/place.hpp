// SPDX-License-Identifier: Apache-2.0
// The ranks that one run of sealift-launch stands for, as numbers, and the variables that tell each of them.
// Between the core's launcher table, which says how this process was started, and the programs that it starts.
// Values only: nothing is started here, and nothing of the environment is read.
#pragma once

#include "bundle/host/start_process.hpp"

#include <sealift/train/launch/launch.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sealift::launch {

/// Some consecutive ranks of a world, all on this host.
struct Place {
  train::Launch launch;    ///< `rank` is the first of them, `local_world_size` counts those of the whole host
  std::int64_t ranks = 1;  ///< to be started here; 1: this process becomes that rank
  std::int64_t nodes = 1;
  std::int64_t node = 0;
};

using bundle::Variable;

/// `launch` with `nproc` ranks on each host, or 0 where the launcher's variables say how many. A launcher that started
/// one process on each host has counted hosts; one that started several has started the ranks, and `nproc` must agree.
/// `environment` is asked for Slurm's count of hosts where they have different numbers of ranks.
Place place_of(train::Launch launch, std::int64_t nproc, const train::Environment& environment);

/// What rank `launch.rank + index` gets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NNODES, NODE_RANK,
/// GROUP_RANK, MASTER_ADDR and MASTER_PORT, as torchrun sets them. NPROC_PER_NODE is removed: the ranks are started.
std::vector<Variable> variables_of_rank(const Place& place, std::int64_t index);

/// What a program gets that starts the ranks of its host itself, such as swift: NNODES, NODE_RANK, NPROC_PER_NODE,
/// MASTER_ADDR and MASTER_PORT. RANK, WORLD_SIZE and LOCAL_RANK are removed: it is no rank.
std::vector<Variable> variables_of_host(const Place& place);

}  // namespace sealift::launch
