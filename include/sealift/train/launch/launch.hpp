// SPDX-License-Identifier: Apache-2.0
// From a process's environment to its place in the world: one small recogniser per launcher, tried in a fixed order.
// First in the run of a program: launch -> connect -> make_groups -> parallelize. Reads variables; touches no network.
// The launcher nearest to the process wins (torchrun inside srun is torchrun). An incomplete set of variables is
// refused by name: a rank that takes itself for a world of one would train alone while the others wait in vain.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/launch/foreign_launchers.hpp>
#include <sealift/train/launch/launch_variables.hpp>

namespace sealift::train {

namespace launchers {

/// RANK and WORLD_SIZE as torchrun, `--ranks` and people set them, counting processes.
Launch of_process(Reader read);

/// A host that must start its ranks itself; `prefix` is empty, or PET_ as in torchrun's own variables.
Launch of_node(Reader read, const std::string& prefix, std::int64_t nodes, std::int64_t node, std::int64_t per_node);

/// torchrun, `sealift-train --ranks`, and any other launcher that sets LOCAL_RANK.
std::optional<Launch> local_rank(const Environment& environment);

/// ms-swift's variables, which mean `torchrun --nnodes NNODES --node_rank NODE_RANK ...` there.
std::optional<Launch> nnodes(const Environment& environment);

/// Kubeflow's PyTorchJob and TrainJob: torchrun's options as PET_ variables, one set per pod. A PyTorchJob also sets
/// RANK, the pod's index, and WORLD_SIZE, the number of processes, which resolves PET_NPROC_PER_NODE=auto.
std::optional<Launch> pet_nnodes(const Environment& environment);

/// Alibaba's PAI-DLC: RANK and WORLD_SIZE count hosts. It is recognised by NPROC_PER_NODE without LOCAL_RANK: the
/// processes of a host have not been started yet.
std::optional<Launch> rank_of_host(const Environment& environment);

/// RANK alone: a PyTorchJob without nprocPerNode, or by hand.
std::optional<Launch> rank_only(const Environment& environment);

/// The variables of an MPI launcher.
struct MpiNames {
  const char *launcher, *rank, *size, *local_rank, *local_size, *job;
};
constexpr MpiNames kMpi[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"mpirun of MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", "PMI_JOBID"},
    {"mpirun of MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
};

/// mpirun. It does not say where rank 0 is, so a job over several hosts must set MASTER_ADDR. srun may set PMI_RANK,
/// but not MPI_LOCALRANKID.
std::optional<Launch> mpirun(const Environment& environment);

/// srun. Only the tasks of a step are ranks: the shell of salloc or sbatch has Slurm's variables too.
std::optional<Launch> srun(const Environment& environment);

/// NPROC_PER_NODE alone: one host, as ms-swift reads it.
std::optional<Launch> nproc_per_node(const Environment& environment);

}  // namespace launchers

/// Finds out how this process was started; the first recogniser that finds its variables decides. Throws when they are
/// incomplete or out of range, naming the variable and the remedy.
Launch parse_launch(const Environment& environment = [](const char* name) { return std::getenv(name); });

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/launch_inl.hpp>
#endif
