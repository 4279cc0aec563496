// SPDX-License-Identifier: Apache-2.0
// A generation with its name is complete; reading its record makes sure that this program made it. Switching to the
// current generation changes nothing.
#include "installer/generations/switch.hpp"

#include "installer/generations/activation.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/prefix_owner.hpp"
#include "installer/store/store.hpp"

namespace sealift::installer {

void require_generation(const Prefix& prefix, unsigned number) {
  require_prefix(prefix);
  std::string there;
  bool found = false;
  for (const unsigned candidate : generation_numbers(prefix)) {
    there += (there.empty() ? "" : ", ") + std::to_string(candidate);
    found = found || candidate == number;
  }
  if (!found)
    throw bundle::Error(bundle::ErrorCode::Missing, {.what = "there is no such generation",
                                                     .where = prefix.generation(number).string(),
                                                     .expected = there.empty() ? "a generation; there is none" : there,
                                                     .got = std::to_string(number),
                                                     .next = "see: sealift-install status"});
}

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
