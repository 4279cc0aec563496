// SPDX-License-Identifier: Apache-2.0
// Reads the ELF file behind a path of this machine, following links: libraries are carried under their SONAME, which is
// usually a link.
#pragma once

#include <filesystem>
#include <optional>

#include "sealift/bundle/native/elf.hpp"

namespace sealift::packager {

// Nothing for an empty file or one that is not ELF. Throws Format for a broken ELF file.
inline std::optional<bundle::ElfFile> read_elf_file(const std::filesystem::path& path) {
  bundle::FileSource source(std::filesystem::canonical(path));
  return source.size() == 0 ? std::nullopt : bundle::read_elf(source);
}

}  // namespace sealift::packager
