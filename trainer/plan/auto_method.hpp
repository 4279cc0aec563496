// SPDX-License-Identifier: Apache-2.0
// `parallel_method auto` by numbers: one job's rows of the table, and the three lines that decided.
// Above table; method_choice.hpp gives it the memory that is free, fine_tune prints the lines.
// The same rows as `plan` prints, of the job's own batch, so that both say the same of a job.
#pragma once

#include "trainer/plan/table.hpp"

namespace sealift::trainer::plan {

/// The part of a rank's free memory that a job may be planned to take: the plan is held to 5 %, and others use memory.
inline constexpr double kPlannedPart = 0.9;

struct Chosen {
  std::string method;
  std::int64_t shard_size = 0;     ///< of hsdp
  std::vector<std::string> lines;  ///< the chosen method's first, for a log
};

/// Chooses for a job that is `asked` but for its method, on `machine`, whose memory is what a rank has free (0:
/// unknown, which is answered by fsdp).
Chosen choose_method(const Candidate& candidate, const Way& asked, const Machine& machine, Kernels kernels);

}  // namespace sealift::trainer::plan
