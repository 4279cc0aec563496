// SPDX-License-Identifier: Apache-2.0
// The ranks of one host: for `sealift-train run --ranks N`, and where a cluster starts one process per host.
// Before the flow: starts this program once per rank with torchrun's variables and waits for all of them.
// The launcher of rank 0's host serves the store, so the store outlives every rank; one rank that dies ends the others.
#pragma once

#include <sealift/train/launch/launch_variables.hpp>

#include <optional>

namespace sealift::trainer {

/// A launch of `ranks` ranks, all on this host.
train::Launch on_this_host(std::int64_t ranks);

/// The rank that failed first, and its wait status.
struct FailedRank {
  std::int64_t rank = 0;
  int status = 0;
};

struct LocalEnd {
  int code = 0;
  std::optional<FailedRank> failed = {};
};

/// Runs `argv` as the ranks of host `launch`; returns 0 when all of them did, else the code of the rank that failed
/// first, 128 and its number for a signal, after ending the others.
LocalEnd run_local_ranks(const train::Launch& launch, char** argv);

}  // namespace sealift::trainer
