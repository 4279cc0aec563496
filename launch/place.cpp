// SPDX-License-Identifier: Apache-2.0
// From a launch to numbers; see place.hpp.
// Between the core's launcher table and the programs that are started.
// One host more or less is one multiplication, so each case is a line and stands beside its refusal.
#include "launch/place.hpp"

namespace sealift::launch {

namespace {

using train::Launch;

/// `launch`, whose ranks are hosts, with `nproc` ranks on each.
Launch with_ranks_on_each(Launch launch, std::int64_t nproc) {
  TORCH_CHECK(nproc <= train::launchers::kMaxRanks / launch.world_size, "--nproc ", nproc, " on ", launch.world_size,
              " hosts is more than ", train::launchers::kMaxRanks, " ranks");
  launch.source =
      c10::str("--nproc ", nproc, launch.world_size > 1 ? " on each host; " + launch.source : std::string());
  launch.rank *= nproc;
  launch.world_size *= nproc;
  launch.local_world_size = nproc;
  launch.local_rank = 0;
  if (launch.master_addr.empty()) launch.master_addr = "127.0.0.1";
  return launch;
}

/// By Slurm's own count where it started the ranks, since its hosts may have different numbers of them; by division
/// where another launcher did, whose hosts are alike.
void count_hosts(Place& place, const train::Environment& environment) {
  const Launch& launch = place.launch;
  const auto first_here = launch.rank - launch.local_rank;
  place.nodes = launch.world_size / launch.local_world_size;
  place.node = first_here / launch.local_world_size;
  const bool even =
      place.nodes * launch.local_world_size == launch.world_size && place.node * launch.local_world_size == first_here;
  if (even && launch.source.find("(srun:") == std::string::npos) return;
  train::launchers::Reader read(environment, "srun", "give every host the same number of ranks");
  place.nodes = read.number(read.either("SLURM_STEP_NUM_NODES", "SLURM_NNODES"), 1, launch.world_size);
  place.node = read.number_or("SLURM_NODEID", 0, place.nodes - 1, 0);
}

void add_master(const Launch& launch, std::vector<Variable>& variables) {
  variables.emplace_back("MASTER_ADDR", launch.master_addr);
  variables.emplace_back("MASTER_PORT", std::to_string(launch.master_port));
}

}  // namespace

Place place_of(Launch launch, std::int64_t nproc, const train::Environment& environment) {
  const bool torchrun = environment("TORCHELASTIC_RUN_ID") != nullptr;
  const bool one_here = launch.local_world_size == 1 && !launch.is_node && !torchrun;
  if (nproc > 1 && one_here) {
    launch = with_ranks_on_each(std::move(launch), nproc);
    launch.is_node = true;
  }
  TORCH_CHECK(nproc == 0 || nproc == launch.local_world_size, "--nproc ", nproc, " beside a launcher that has ",
              launch.local_world_size, " ranks on this host; leave --nproc out, or have it start one task on each host",
              " (", launch.source, ")");
  Place place{.launch = std::move(launch)};
  place.ranks = place.launch.is_node ? place.launch.local_world_size : 1;
  if (place.launch.master_addr.empty()) place.launch.master_addr = "127.0.0.1";
  count_hosts(place, environment);
  return place;
}

std::vector<Variable> variables_of_rank(const Place& place, std::int64_t index) {
  const Launch& launch = place.launch;
  std::vector<Variable> variables = {{"RANK", std::to_string(launch.rank + index)},
                                     {"WORLD_SIZE", std::to_string(launch.world_size)},
                                     {"LOCAL_RANK", std::to_string(launch.local_rank + index)},
                                     {"LOCAL_WORLD_SIZE", std::to_string(launch.local_world_size)},
                                     {"NNODES", std::to_string(place.nodes)},
                                     {"NODE_RANK", std::to_string(place.node)},
                                     {"GROUP_RANK", std::to_string(place.node)},
                                     {"NPROC_PER_NODE", std::nullopt}};
  add_master(launch, variables);
  // Only torchrun serves a store; a left-over of it would have every rank wait for one.
  if (!launch.agent_store) variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE", std::nullopt);
  return variables;
}

std::vector<Variable> variables_of_host(const Place& place) {
  std::vector<Variable> variables = {{"NNODES", std::to_string(place.nodes)},
                                     {"NODE_RANK", std::to_string(place.node)},
                                     {"NPROC_PER_NODE", std::to_string(place.launch.local_world_size)}};
  add_master(place.launch, variables);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"})
    variables.emplace_back(name, std::nullopt);
  return variables;
}

}  // namespace sealift::launch
