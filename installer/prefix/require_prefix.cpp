// SPDX-License-Identifier: Apache-2.0
// A run that was refused may have left its lock; every other one leaves more.
#include "installer/prefix/require_prefix.hpp"

#include "sealift/bundle/core/error.hpp"

namespace sealift::installer {

bool is_prefix(const Prefix& prefix) {
  std::error_code ignored;
  for (const std::filesystem::path& sign :
       {prefix.current(), prefix.trust(), prefix.store(), prefix.generations(), prefix.staging()})
    if (std::filesystem::exists(std::filesystem::symlink_status(sign, ignored))) return true;
  return false;
}

void require_prefix(const Prefix& prefix) {
  if (!is_prefix(prefix))
    throw bundle::Error(bundle::ErrorCode::Missing, {.what = "there is no prefix here",
                                                     .where = prefix.folder().string(),
                                                     .expected = "a folder that sealift-install made",
                                                     .next = "name the folder that was given to apply"});
}

}  // namespace sealift::installer
