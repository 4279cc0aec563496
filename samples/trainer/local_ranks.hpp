// SPDX-License-Identifier: Apache-2.0
// `sealift-train run --ranks N`: N ranks on this host, for hosts that have no torchrun.
// Before the flow: starts this same program N times with torchrun's variables and waits for all of them.
// The launcher serves the store, so no port has to be guessed, and one rank that dies ends the others.
#pragma once

#include <cstdint>

namespace sealift::trainer {

/// Runs `argv` again as `ranks` processes; returns 0 when all of them did, else 1 after ending those left.
int run_local_ranks(std::int64_t ranks, char** argv);

}  // namespace sealift::trainer
