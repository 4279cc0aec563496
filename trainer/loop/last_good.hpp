// SPDX-License-Identifier: Apache-2.0
// Which of a run's checkpoints it goes on from: the last one, and where that is damaged the one before.
// Once, when a run begins; between a story and its way to load one checkpoint.
// What is damaged keeps its bytes for who wants to know why, under a name that no run takes for a checkpoint: the run
// comes to that step again.
#pragma once

#include "trainer/failure.hpp"

#include <sealift/train.hpp>

#include <functional>

namespace sealift::trainer {

/// Whole checkpoints in `folder`, the last first.
inline std::vector<std::filesystem::path> whole_checkpoints(const std::filesystem::path& folder) {
  const auto steps = train::list_steps(folder);
  std::vector<std::filesystem::path> result;
  for (auto each = steps.rbegin(); each != steps.rend(); ++each) {
    if (train::is_whole(each->second)) result.push_back(each->second);
  }
  return result;
}

/// Sets a damaged checkpoint of `folder` aside: step-000020 becomes damaged-step-000020, or with a number behind it
/// where there is one. By one rank.
inline void set_aside(const std::filesystem::path& checkpoint) {
  const auto name = "damaged-" + checkpoint.filename().string();
  auto aside = checkpoint.parent_path() / name;
  for (int number = 2; std::filesystem::exists(aside); ++number) {
    aside = checkpoint.parent_path() / (name + "-" + std::to_string(number));
  }
  std::filesystem::rename(checkpoint, aside);
  say("it is kept as " + aside.string());
}

/// Calls `load` for the first of `checkpoints` that is not damaged, and names the damaged ones; sets aside the ones
/// among them that lie in `own`. Throws where all are damaged, and does nothing where there is none. Collective.
inline void go_on_from_the_last_good(const std::vector<std::filesystem::path>& checkpoints,
                                     const std::filesystem::path& own, train::Collectives& world,
                                     const std::function<void(const std::filesystem::path&)>& load) {
  std::size_t damaged = 0;
  for (const auto& checkpoint : checkpoints) {
    try {
      load(checkpoint);
      break;
    } catch (const train::DamagedCheckpoint& error) {
      const bool is_last = ++damaged == checkpoints.size();
      TORCH_CHECK(!is_last, "no checkpoint can be read, of ", damaged, ": the oldest, ", checkpoint.string(),
                  ", is damaged: ", text_of(error), "; remove them to begin anew, or give a copy of one by name");
      if (world.rank() != 0) continue;
      say("the checkpoint " + checkpoint.string() + " is damaged: " + text_of(error) + "; trying the one before");
    }
  }
  if (damaged == 0) return;
  train::detail::all_or_none(world, "setting damaged checkpoints aside", [&]() -> std::string {
    for (std::size_t i = 0; i < damaged && world.rank() == 0; ++i) {
      if (checkpoints[i].parent_path() == (own / "step").parent_path()) set_aside(checkpoints[i]);
    }
    return "";
  });
}

}  // namespace sealift::trainer
