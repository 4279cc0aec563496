// SPDX-License-Identifier: Apache-2.0
// An item that is promised here and is found damaged later costs another disc and another trip, so each is checked.
#include "installer/upkeep/inventory.hpp"

#include "installer/prefix/require_prefix.hpp"
#include "installer/store/item_check.hpp"
#include "installer/upkeep/status.hpp"

namespace sealift::installer {

namespace fs = std::filesystem;

namespace {

void add_generations(const Prefix& prefix, TakenInventory& inventory) {
  for (const Status::Generation& generation : status_of(prefix).generations) {
    if (generation.record) {
      for (const GenerationRecord::Bundle& one : bundles_of(*generation.record))
        inventory.found.generations.insert(
            {.name = one.name, .channel = one.channel, .version = one.version, .identity = one.identity});
    } else {
      inventory.warnings.push_back("generation " + Prefix::generation_name(generation.number) +
                                   " is left out: " + generation.fault);
    }
  }
}

}  // namespace

TakenInventory take_inventory(const Prefix& prefix) {
  require_prefix(prefix);
  TakenInventory inventory;
  add_generations(prefix, inventory);
  std::error_code error;
  if (!fs::exists(prefix.store(), error)) return inventory;
  fs::directory_iterator items(prefix.store(), error);
  if (error) bundle::throw_errno("the store cannot be listed", prefix.store(), error.value());
  for (const fs::directory_entry& item : items) {
    const std::string name = item.path().filename().string();
    if (!bundle::is_store_item_name(name)) continue;
    if (const std::string fault = item_fault(item.path()); fault.empty())
      inventory.found.items.insert(name);
    else
      inventory.warnings.push_back("the store item " + name + " is left out: " + fault);
  }
  return inventory;
}

}  // namespace sealift::installer
