// SPDX-License-Identifier: Apache-2.0
// The ELF file that a path of this machine means, links followed: what is carried from here is asked for by its SONAME,
// which is a link more often than not.
#pragma once

#include <filesystem>
#include <optional>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

// Nothing when it is empty or no ELF file. Throws Format when it is a broken one.
inline std::optional<bundle::ElfFile> read_elf_file(const std::filesystem::path& path) {
  bundle::FileSource source(std::filesystem::canonical(path));
  return source.size() == 0 ? std::nullopt : bundle::read_elf(source);
}

}  // namespace sealift::packager
