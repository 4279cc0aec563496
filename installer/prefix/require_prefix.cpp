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
  if (is_prefix(prefix)) return;
  std::filesystem::path around = prefix.folder();
  while (around.has_relative_path() && !is_prefix(Prefix(around))) around = around.parent_path();
  std::error_code ignored;
  throw bundle::Error(
      bundle::ErrorCode::Missing,
      {.what =
           std::filesystem::exists(prefix.folder(), ignored) ? "this folder is no prefix" : "there is no prefix here",
       .where = prefix.folder().string(),
       .expected = "a folder that sealift-install apply was given; generations/ and trust/ are in it",
       .next = around.has_relative_path()
                   ? "the prefix is the folder above: --prefix '" + around.string() + "'"
                   : "name the folder that was given to apply, or install there first: sealift-install apply "
                     "BUNDLE --prefix '" +
                         prefix.folder().string() + "'"});
}

}  // namespace sealift::installer
