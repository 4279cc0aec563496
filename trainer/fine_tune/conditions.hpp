// SPDX-License-Identifier: Apache-2.0
// What a run's numbers come from beside the settings that may not change: how many steps its schedule has, how its rows
// are cut into micro-batches, what computes. Kept in a checkpoint's notes, and compared by the run that goes on.
// Between checkpoints.hpp, which compares settings, and fine_tune, which resumes.
#pragma once

#include "trainer/fine_tune/goal.hpp"
#include "trainer/loop/computed_with.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/schedule.hpp"

namespace sealift::trainer {

/// The schedule of a job of so many steps.
Schedule schedule_of(const FineTuneOptions& options, std::int64_t steps);

/// What a checkpoint keeps of this run. `steps`: of the whole job.
Texts conditions_of(const FineTuneOptions& options, const Place& place, std::int64_t steps);

/// Throws where `then`, the notes of `checkpoint`, have other micro-batches than this run, and something of its
/// objective is a mean over each of them, so that another cut is another objective. Notes that say nothing pass.
void require_same_cut(const Texts& then, const FineTuneOptions& options, const Goal& goal,
                      const std::string& checkpoint);

/// A line for each that is another now, of a run that goes on after `step`: what it means for the numbers.
std::vector<std::string> changed_conditions(const Texts& then, const FineTuneOptions& options, const Place& place,
                                            std::int64_t steps, std::int64_t step);

}  // namespace sealift::trainer
