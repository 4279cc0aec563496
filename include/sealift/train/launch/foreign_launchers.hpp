// SPDX-License-Identifier: Apache-2.0
// Launchers whose variables are known by name and not read: a task of theirs must not take itself for a job of one.
// Beside `launch`, which asks here before it takes a process or a host for all there is.
// What they say is not enough for a world (no address of rank 0, or no number of tasks), so each is refused with what
// to set; a list of names is all that it takes.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/launch/launch_variables.hpp>

namespace sealift::train::launchers {

/// A launcher: the variable that numbers its tasks, and, where there is one, the variable that counts them.
struct ForeignNames {
  const char *launcher, *rank, *size;
};
constexpr ForeignNames kForeign[] = {
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"aprun or mpiexec of PALS", "PALS_RANKID", "PMI_SIZE"},
    {"aprun of ALPS", "ALPS_APP_PE", nullptr},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"LeaderWorkerSet", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE"},
    {"an indexed job of Kubernetes", "JOB_COMPLETION_INDEX", nullptr},
    {"Volcano or ModelArts", "VC_TASK_INDEX", "VC_WORKER_NUM"},
    {"SageMaker", "SM_CURRENT_HOST", "SM_HOSTS"},
    {"AWS Batch", "AWS_BATCH_JOB_NODE_INDEX", "AWS_BATCH_JOB_NUM_NODES"},
    {"SkyPilot", "SKYPILOT_NODE_RANK", "SKYPILOT_NUM_NODES"},
    {"dstack", "DSTACK_NODE_RANK", "DSTACK_NODES_NUM"},
    {"HTCondor's parallel universe", "_CONDOR_PROCNO", "_CONDOR_NPROCS"},
};

/// How many tasks a text speaks of: a number, or the items of a JSON list of texts; nothing where it is neither.
std::optional<std::int64_t> tasks_in(std::string_view text);

/// Throws where such a launcher started this process as one of several, or does not say of how many.
void refuse_foreign(const Environment& environment);

}  // namespace sealift::train::launchers

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/launch/foreign_launchers_inl.hpp>
#endif
