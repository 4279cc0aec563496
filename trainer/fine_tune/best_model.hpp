// SPDX-License-Identifier: Apache-2.0
// The checkpoint of the least evaluation loss, OUT/best/step-N: saved when an evaluation finds it, taken at the end.
// Around the loop, which evaluates. A run that was cut short goes on from a checkpoint that may be older, so the best
// that this checkpoint knows stays until the next one, and what was found after it is found again.
#pragma once

#include "trainer/fine_tune/checkpoints.hpp"

#include <set>

namespace sealift::trainer {

inline std::filesystem::path best_checkpoint(const FineTuneOptions& options, std::int64_t step) {
  return best_folder(options) / train::step_folder(step);
}

/// Removes the checkpoints in OUT/best of all steps but these. By one rank.
inline void keep_best_of(const FineTuneOptions& options, const std::set<std::int64_t>& steps) {
  for (const auto& [step, path] : train::list_steps(best_folder(options))) {
    if (steps.contains(step)) continue;
    // The index goes first: a checkpoint that is half removed is never loaded.
    if (std::filesystem::remove(path / train::kIndexFile)) train::sync_folder(path);
    std::filesystem::remove_all(path);
  }
}

/// The step of the best that `position`, at which a run begins, counts on; -1 without one. Throws when it is not there.
inline std::int64_t best_to_begin_with(const FineTuneOptions& options, const Position& position) {
  const auto best = position.best();
  if (!options.load_best_model_at_end || !best) return -1;
  const auto path = best_checkpoint(options, best->step);
  TORCH_CHECK(train::is_whole(path), "the least evaluation loss so far is that of step ", best->step, ", but ",
              path.string(), " is no whole checkpoint, so it could not be taken at the end; put it there, or go on ",
              "without load_best_model_at_end");
  return best->step;
}

}  // namespace sealift::trainer
