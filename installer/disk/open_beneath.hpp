// SPDX-License-Identifier: Apache-2.0
// Opens what lies below a folder that is open already, and never follows a symbolic link on the way: neither the last
// name nor one before it can lead out of that folder. Every path inside a prefix is resolved so.
#pragma once

#include <string>

#include "sealift/bundle/core/file.hpp"

namespace sealift::installer {

enum class Resolve {
  AsTheKernelCan,  // openat2(2) with RESOLVE_BENEATH, where there is one (Linux 5.6)
  NameByName,      // one openat(2) with O_NOFOLLOW for each name
};

// `path` is relative, without "." and ".."; `flags` are those of open(2). Nothing when it failed; then errno says why:
// ELOOP or ENOTDIR for a link, EXDEV for a path that leads out.
bundle::Descriptor open_beneath(int folder, const std::string& path, int flags, Resolve how = Resolve::AsTheKernelCan);

}  // namespace sealift::installer
