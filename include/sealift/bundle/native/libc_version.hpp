// SPDX-License-Identifier: Apache-2.0
// The version of a GNU C library, from its own file. The newest symbol version is not it: 2.31, 2.37 and 2.40 brought
// no new symbol for x86-64, so by its symbols Debian 11's glibc would pass for 2.30.
#pragma once

#include <optional>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/native/elf.hpp"

namespace sealift::bundle {

// `elf` is what read_elf found in `libc`. The banner that glibc prints when libc.so.6 is started decides ("stable
// release version 2.31."), and the newest symbol version where there is none or it says less; nothing when there is
// neither. Reads at most 64 MiB.
std::optional<GlibcVersion> libc_version(ByteSource& libc, const ElfFile& elf);

}  // namespace sealift::bundle
