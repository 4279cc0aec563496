// SPDX-License-Identifier: Apache-2.0
// Saves that may fail: a full disk, a quota or a folder that went away ends no job.
// Between the loop, which asks after each step, and a job's save, which fails on all ranks alike (train::SaveFailed).
// A save that failed is tried again by steps and not by a clock, since all ranks must try together.
#pragma once

#include <sealift/train.hpp>

#include <functional>
#include <optional>

namespace sealift::trainer {

/// What the checkpoints of a run will take in `folder`.
struct RoomNeeded {
  std::filesystem::path folder;
  std::int64_t bytes = 0;   ///< of one, over all ranks
  std::int64_t kept = 0;    ///< how many stay; 0: all
  std::int64_t saves = 0;   ///< how many the run will make
  std::int64_t beside = 0;  ///< as large ones that it keeps elsewhere on the disk, as the best
};

/// Bytes of a checkpoint of `parallel` with AdamW's two moments, over all ranks; `frozen`: with what is not trained.
/// Collective.
std::int64_t checkpoint_bytes(train::Parallel& parallel, bool frozen);

/// What to say where the checkpoints will not fit into what is free in their folder; nothing where they will. One more
/// than are kept is there while it is written.
std::optional<std::string> lack_of_room(const RoomNeeded& needed);

/// Throws where a run that begins anew (`resumes` is false) has no room for a single checkpoint; says it in all other
/// cases where they will not all fit. Collective.
void ask_for_room(train::Collectives& world, const RoomNeeded& needed, bool resumes);

/// The saves of a run.
class Saving {
 public:
  /// `says`: this rank reports; `last`: the step of the last checkpoint, 0: there is none.
  Saving(bool says, std::int64_t last) : says_(says), last_(last) {}

  /// Calls `save` where one `is_due` after `step`, or where one that failed is to be tried again: after 1, 2, 4, ...
  /// steps. Whether a checkpoint was saved. Collective.
  bool after_step(std::int64_t step, bool is_due, const std::function<void()>& save);

  /// The step of the last checkpoint; 0: there is none.
  std::int64_t last() const { return last_; }

  /// Steps after which a checkpoint could not be saved.
  const std::vector<std::int64_t>& failed() const { return failed_; }

 private:
  bool says_;
  std::int64_t last_;
  std::optional<std::int64_t> again_;  ///< the step after which it is tried again
  std::int64_t wait_ = 1;              ///< steps, after the next failure
  std::vector<std::int64_t> failed_;
};

}  // namespace sealift::trainer
