// SPDX-License-Identifier: Apache-2.0
// A generation with its name is complete; reading its record makes sure that this program made it. Switching to the
// current generation changes nothing.
#include "installer/upkeep/switch.hpp"

#include "installer/activation/activation.hpp"
#include "installer/generations/generation.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/store/store.hpp"

namespace sealift::installer {

GenerationRecord switch_to(const Prefix& prefix, unsigned number, Disk& disk) {
  require_generation(prefix, number);
  const PrefixLock lock(prefix, disk, "switch");
  require_generation(prefix, number);  // a gc may have ended meanwhile
  GenerationRecord record = read_generation_record(prefix.generation(number), number);
  sweep(prefix, disk);
  disk.make_folder(prefix.staging());
  replace_small_files(activation_files(prefix, record), prefix, prefix.staging(), disk);  // it may have been moved
  point_current_at(prefix, number, prefix.staging(), disk);
  sweep(prefix, disk);
  return record;
}

}  // namespace sealift::installer
