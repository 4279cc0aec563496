// SPDX-License-Identifier: Apache-2.0
// Under the prefix lock, so that a gc at the same time sees the pin or has not begun.
#include "installer/generations/pins.hpp"

#include "installer/generations/generation.hpp"
#include "installer/prefix/prefix_lock.hpp"

namespace sealift::installer {

namespace {
std::filesystem::path pin_of(const Prefix& prefix, unsigned number) {
  return prefix.pins() / Prefix::generation_name(number);
}
}  // namespace

std::set<unsigned> pinned_generations(const Prefix& prefix) {
  const std::vector<unsigned> numbers = numbers_in(prefix.pins());
  return {numbers.begin(), numbers.end()};
}

bool pin_generation(const Prefix& prefix, unsigned number, Disk& disk) {
  require_generation(prefix, number);
  const PrefixLock lock(prefix, disk, "pin");
  require_generation(prefix, number);  // a gc may have ended meanwhile
  if (pinned_generations(prefix).contains(number)) return false;
  disk.make_folder(prefix.pins());
  disk.write_new(pin_of(prefix, number), "", 0444);
  disk.sync_folder(prefix.pins());
  disk.sync_folder(prefix.folder());
  return true;
}

bool unpin_generation(const Prefix& prefix, unsigned number, Disk& disk) {
  require_generation(prefix, number);
  const PrefixLock lock(prefix, disk, "unpin");
  if (!pinned_generations(prefix).contains(number)) return false;
  disk.remove_tree(pin_of(prefix, number));
  disk.sync_folder(prefix.pins());
  return true;
}

}  // namespace sealift::installer
