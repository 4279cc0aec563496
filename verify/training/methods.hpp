// SPDX-License-Identifier: Apache-2.0
// The parallel methods, accumulation and recompute against one process; resuming against not stopping.
// Lists of checks that `training_checks` joins.
// A check a job, since each job of several ranks needs a port of its own and a failure a name of its own.
#pragma once

#include "verify/training/job.hpp"

namespace sealift::verify {

std::vector<CheckKind> method_checks();
std::vector<CheckKind> resume_checks();

/// Judges a job of `run` on rank 0 (`ranks`, `result`, `norms`, `reference` of the same, `tolerance`): the curves, and
/// with 100 steps the entropy of the data that both must reach.
void judge_method(const std::vector<Measured>& all, const Phrase& name, Check& check);

}  // namespace sealift::verify
