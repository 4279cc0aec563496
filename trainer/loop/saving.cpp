// SPDX-License-Identifier: Apache-2.0
// Saves that may fail, and the question before the first step whether they will.
// See saving.hpp.
// What is free now may be gone at the save, and what is taken may be freed: so the question only refuses a run that
// could not save once.
#include "trainer/loop/saving.hpp"

#include "trainer/failure.hpp"

#include "sealift/bundle/core/human_text.hpp"

namespace sealift::trainer {
namespace {

namespace fs = std::filesystem;

/// Bytes that are free for this account where `folder` is or will be; nothing where the system does not say.
std::optional<std::int64_t> free_bytes(const fs::path& folder) {
  std::error_code error;
  auto there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const auto space = fs::space(there, error);
  if (error || space.capacity == 0) return std::nullopt;  // a file system that counts nothing
  return static_cast<std::int64_t>(space.available);
}

std::string size(std::int64_t bytes) {
  return bundle::human_size(static_cast<std::uint64_t>(bytes));
}

std::int64_t whole_ones(const fs::path& folder) {
  const auto steps = train::list_steps(folder);
  return std::count_if(steps.begin(), steps.end(), [](const auto& each) { return train::is_whole(each.second); });
}

/// How many more there will be at the peak.
std::int64_t at_the_peak(const RoomNeeded& needed) {
  const auto more =
      needed.kept == 0 ? needed.saves
                       : std::min(needed.saves, std::max<std::int64_t>(1, needed.kept + 1 - whole_ones(needed.folder)));
  return more + needed.beside;
}

}  // namespace

std::int64_t checkpoint_bytes(train::Parallel& parallel, bool frozen) {
  std::int64_t mine = 0;
  for (const auto& parameter : parallel.parameters()) {
    const bool trains = parameter.shard.requires_grad();
    if (!trains && (!frozen || parameter.stored)) continue;
    const auto elements = train::detail::written_range(parameter).second;
    mine += elements * static_cast<std::int64_t>(parameter.shard.element_size()) * (trains ? 3 : 1);
  }
  std::int64_t all = 0;
  for (const auto& text : train::detail::gather_texts(parallel.groups().world, std::to_string(mine))) {
    all += std::stoll(text);
  }
  return all;
}

std::optional<std::string> lack_of_room(const RoomNeeded& needed) {
  const auto free = free_bytes(needed.folder);
  const auto more = at_the_peak(needed);
  if (!free || more == 0 || needed.bytes <= *free / more) return std::nullopt;
  return "the checkpoints of this run take " + size(needed.bytes) + " each in " + needed.folder.string() + ", and " +
         std::to_string(more) + " more of them at the peak" +
         (needed.kept > 0 ? " (one more than are kept, while it is written)" : "") + ": " + size(more * needed.bytes) +
         "; free there are " + size(*free);
}

void ask_for_room(train::Collectives& world, const RoomNeeded& needed, bool resumes) {
  train::detail::all_or_none(world, "asking for room", [&]() -> std::string {
    if (world.rank() != 0 || needed.saves == 0) return "";
    const auto lack = lack_of_room(needed);
    if (!lack) return "";
    const auto free = free_bytes(needed.folder).value_or(0);
    TORCH_CHECK(resumes || needed.bytes <= free, *lack, "; not one fits: make room, write elsewhere, or save none");
    say("note: " + *lack +
        "; a save that does not fit is reported and tried again, and ends nothing; make room, or "
        "keep fewer");
    return "";
  });
}

bool Saving::after_step(std::int64_t step, bool is_due, const std::function<void()>& save) {
  if (!is_due && again_ != step) return false;
  try {
    save();
  } catch (const train::SaveFailed& error) {
    failed_.push_back(step);
    again_ = step + wait_;
    wait_ *= 2;
    if (!says_) return false;
    const auto free = free_bytes(error.folder);
    say("the checkpoint of step " + std::to_string(step) + " is not saved: " + text_of(error) + "; it takes " +
        size(error.bytes) + (free ? ", and " + size(*free) + " are free there" : "") + "; training goes on, " +
        (last_ > 0 ? "the last good checkpoint is that of step " + std::to_string(last_) : "there is none yet") +
        ", and it is tried again after step " + std::to_string(*again_));
    return false;
  }
  if (again_ && says_) say("the checkpoint of step " + std::to_string(step) + " is saved again");
  again_.reset();
  wait_ = 1;
  last_ = step;
  return true;
}

}  // namespace sealift::trainer
