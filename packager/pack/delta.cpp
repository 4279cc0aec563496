// SPDX-License-Identifier: Apache-2.0
// Marks entries of a plan; see delta.hpp.
#include "packager/pack/delta.hpp"

#include <fmt/format.h>

#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

bundle::Inventory read_inventory(const std::filesystem::path& file) {
  return bundle::parse_inventory(bundle::read_text(file, bundle::kMaxInventorySize), file.string());
}

void make_delta(PackPlan& plan, const bundle::Inventory& inventory, Console& console) {
  std::size_t absent = 0;
  std::uint64_t bytes = 0;
  for (PlannedEntry& entry : plan.entries) {
    entry.draft.absent = inventory.has(entry.draft);
    if (!entry.draft.absent) continue;
    ++absent;
    bytes += entry.draft.size;
  }
  for (const bundle::Inventory::Installed& one : inventory.generations)
    if (one.name == plan.draft.name && one.channel == plan.draft.channel && one.version >= plan.draft.version)
      console.warn(
          fmt::format("the target already has version {} of {} and will refuse version {}; raise the job's "
                      "version",
                      one.version, one.name, plan.draft.version));
  if (absent == 0) {
    console.warn("the inventory has nothing of this bundle, so it is not a delta: it carries everything");
    return;
  }
  plan.draft.base = bundle::inventory_digest(inventory);
  console.note(fmt::format("a delta: {} of {} entries ({}) are not carried, because the target has them", absent,
                           plan.entries.size(), human_size(bytes)));
}

}  // namespace sealift::packager
