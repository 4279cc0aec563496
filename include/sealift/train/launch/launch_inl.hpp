// SPDX-License-Identifier: Apache-2.0
// The bodies of launch.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/launch/launch.hpp>

#include <cstdlib>

namespace sealift::train {

namespace launchers {

SEALIFT_BODY Launch of_process(Reader read) {
  Launch launch;
  launch.world_size = read.number("WORLD_SIZE", 1, kMaxRanks);
  launch.rank = read.number("RANK", 0, launch.world_size - 1);
  launch.master_addr = read.address("MASTER_ADDR");
  launch.master_port = read.number("MASTER_PORT", 1, 65535);
  // Without LOCAL_RANK a host has one rank, as a pod of a PyTorchJob does, unless all ranks are visibly on this host.
  const bool one_host = is_loopback(launch.master_addr), local = read.has("LOCAL_RANK");
  launch.local_world_size =
      read.number_or("LOCAL_WORLD_SIZE", 1, launch.world_size, one_host || local ? launch.world_size : 1);
  launch.local_rank = read.number_or("LOCAL_RANK", 0, launch.local_world_size - 1, one_host ? launch.rank : 0);
  launch.agent_store = read.has("TORCHELASTIC_USE_AGENT_STORE") && read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.attempt = std::to_string(read.number_or("TORCHELASTIC_RESTART_COUNT", 0, kMaxRestarts, 0));
  return read.found(launch);
}

SEALIFT_BODY Launch of_node(Reader read, const std::string& prefix, std::int64_t nodes, std::int64_t node,
                            std::int64_t per_node) {
  Launch launch{.rank = node * per_node,
                .world_size = nodes * per_node,
                .local_world_size = per_node,
                .is_node = per_node > 1,
                .master_addr = "127.0.0.1"};
  if (nodes > 1) {
    launch.master_addr = read.address(read.either(prefix + "MASTER_ADDR", "MASTER_ADDR"));
    launch.master_port = read.number_or(read.either(prefix + "MASTER_PORT", "MASTER_PORT"), 1, 65535, kTorchrunPort);
  }
  return read.found(launch);
}

SEALIFT_BODY std::optional<Launch> local_rank(const Environment& environment) {
  Reader read(environment, environment("TORCHELASTIC_RUN_ID") ? "torchrun" : "RANK and LOCAL_RANK as from torchrun",
              "set all of RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or none");
  if (!read.has("RANK") || !read.has("LOCAL_RANK")) return std::nullopt;
  return of_process(std::move(read));
}

SEALIFT_BODY std::optional<Launch> nnodes(const Environment& environment) {
  Reader read(environment, "NNODES as for ms-swift",
              "set NNODES, NODE_RANK, NPROC_PER_NODE, MASTER_ADDR and MASTER_PORT on every host");
  if (!read.has("NNODES")) return std::nullopt;
  const auto nodes = read.number("NNODES", 1, kMaxRanks);
  const auto node = nodes == 1 ? 0 : read.number("NODE_RANK", 0, nodes - 1);
  const auto per_node = read.number_or("NPROC_PER_NODE", 1, kMaxRanksPerHost, 1);  // before `read` is copied
  return of_node(read, "", nodes, node, per_node);
}

SEALIFT_BODY std::optional<Launch> pet_nnodes(const Environment& environment) {
  Reader read(environment, "a Kubeflow job",
              "set NPROC_PER_NODE where the job says auto; an elastic job has to go through torchrun --no-python");
  if (!read.has("PET_NNODES")) return std::nullopt;
  const auto nodes = read.number("PET_NNODES", 1, kMaxRanks);
  const auto node = nodes == 1 ? 0 : read.number("PET_NODE_RANK", 0, nodes - 1);
  const auto name = read.either("NPROC_PER_NODE", "PET_NPROC_PER_NODE");
  const bool is_number = read.has(name) && environment(name.c_str())[0] >= '0' && environment(name.c_str())[0] <= '9';
  const auto per_node = !is_number && read.has("WORLD_SIZE") ? read.number("WORLD_SIZE", 1, kMaxRanks) / nodes
                                                             : read.number_or(name, 1, kMaxRanksPerHost, 1);
  return of_node(read, "PET_", nodes, node, std::max<std::int64_t>(per_node, 1));
}

SEALIFT_BODY std::optional<Launch> rank_of_host(const Environment& environment) {
  Reader read(environment, "RANK with NPROC_PER_NODE as on PAI-DLC, where they count hosts",
              "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or unset NPROC_PER_NODE if RANK counts processes");
  if (!read.has("RANK") || !read.has("NPROC_PER_NODE")) return std::nullopt;
  const auto nodes = read.number("WORLD_SIZE", 1, kMaxRanks);
  const auto node = read.number("RANK", 0, nodes - 1);
  const auto per_node = read.number("NPROC_PER_NODE", 1, kMaxRanksPerHost);  // before `read` is copied
  return of_node(read, "", nodes, node, per_node);
}

SEALIFT_BODY std::optional<Launch> rank_only(const Environment& environment) {
  Reader read(environment, "RANK", "set all of RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or none");
  if (!read.has("RANK")) return std::nullopt;
  return of_process(std::move(read));
}

SEALIFT_BODY std::optional<Launch> mpirun(const Environment& environment) {
  for (const auto& names : kMpi) {
    Reader read(environment, names.launcher,
                "say where rank 0 runs: mpirun -x MASTER_ADDR=ADDRESS (Open MPI) or -genv MASTER_ADDR ADDRESS (MPICH)");
    if (!read.has(names.local_rank)) continue;
    Launch launch;
    launch.world_size = read.number(names.size, 1, kMaxRanks);
    launch.rank = read.number(names.rank, 0, launch.world_size - 1);
    launch.local_world_size = read.number_or(names.local_size, 1, launch.world_size, 1);
    launch.local_rank = read.number(names.local_rank, 0, kMaxRanksPerHost);
    const bool one_host = launch.local_world_size == launch.world_size && !read.has("MASTER_ADDR");
    launch.master_addr = one_host ? "127.0.0.1" : read.address("MASTER_ADDR");
    const auto port = read.has(names.job) ? port_of_job(read.text(names.job)) : kTorchrunPort;
    launch.master_port = read.number_or("MASTER_PORT", 1, 65535, port);
    return read.found(launch);
  }
  return std::nullopt;
}

SEALIFT_BODY std::optional<Launch> srun(const Environment& environment) {
  constexpr std::int64_t kFirstReservedStep = 0xfffffff0;  // batch scripts and interactive shells
  Reader read(environment, "srun", "start the ranks with srun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  if (!read.has("SLURM_PROCID") || !read.has("SLURM_STEP_ID")) return std::nullopt;
  const auto step = read.number("SLURM_STEP_ID", 0, 0xffffffff);
  if (step >= kFirstReservedStep) return std::nullopt;
  Launch launch;
  launch.world_size = read.number(read.either("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), 1, kMaxRanks);
  launch.rank = read.number("SLURM_PROCID", 0, launch.world_size - 1);
  const auto nodes = read.number(read.either("SLURM_STEP_NUM_NODES", "SLURM_NNODES"), 1, launch.world_size);
  const auto node = read.number_or("SLURM_NODEID", 0, nodes - 1, 0);
  const auto counts = read.either("SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE");
  const auto here = read.has(counts) ? count_at(read.text(counts), node) : std::nullopt;
  launch.local_world_size = here.value_or((launch.world_size + nodes - 1) / nodes);
  launch.local_rank = read.number("SLURM_LOCALID", 0, launch.local_world_size - 1);
  if (read.has("MASTER_ADDR")) {
    launch.master_addr = read.address("MASTER_ADDR");
  } else {
    launch.master_addr =
        nodes == 1 ? "127.0.0.1" : first_host(read.text(read.either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")));
  }
  // Another step of the same job may run at the same time.
  const auto port = port_of_job(read.text("SLURM_JOB_ID") + "." + std::to_string(step));
  launch.master_port = read.number_or("MASTER_PORT", 1, 65535, port);
  return read.found(launch);
}

SEALIFT_BODY std::optional<Launch> nproc_per_node(const Environment& environment) {
  Reader read(environment, "NPROC_PER_NODE as for ms-swift", "set it to the number of ranks on this host");
  if (!read.has("NPROC_PER_NODE")) return std::nullopt;
  TORCH_CHECK(!read.has("NODE_RANK") || read.number("NODE_RANK", 0, kMaxRanks) == 0,
              "NODE_RANK is set but NNODES is not; set NNODES to the number of hosts, or unset NODE_RANK");
  const auto per_node = read.number("NPROC_PER_NODE", 1, kMaxRanksPerHost);  // before `read` is copied
  return of_node(read, "", 1, 0, per_node);
}

}  // namespace launchers

SEALIFT_BODY Launch parse_launch(const Environment& environment) {
  using namespace launchers;
  using Recogniser = std::optional<Launch> (*)(const Environment&);
  constexpr Recogniser kNearestFirst[] = {local_rank, nnodes, pet_nnodes, rank_of_host, rank_only, mpirun, srun};
  std::optional<Launch> found;
  for (const auto recognise : kNearestFirst) {
    if (!found) found = recognise(environment);
  }
  if (!found) refuse_foreign(environment);
  if (!found) found = nproc_per_node(environment);
  if (!found) {
    for (const char* name : {"WORLD_SIZE", "NODE_RANK", "PMIX_RANK", "PMI_RANK"}) {
      TORCH_CHECK(!environment(name), name, " is set, but neither RANK nor another launcher's variables say which ",
                  "rank of how many this is; set RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, or unset ", name);
    }
    found = Launch{};
  }
  const char* const interface = environment("GLOO_SOCKET_IFNAME");
  if (interface && found->world_size > 1) found->interface = interface;
  return *found;
}

}  // namespace sealift::train
