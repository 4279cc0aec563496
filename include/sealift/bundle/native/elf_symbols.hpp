// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of an ELF file: what it defines for others, and what others must define for it. A program that is
// bound as it runs starts without some of the latter and dies when it comes to one; these tables tell before.
// Format: System V ABI, "Symbol Table" and "Hash Table"; DT_GNU_HASH as glibc reads it; versions as in the LSB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::bundle {

// What stands for a symbol's name where only equality counts: the first 8 bytes of its SHA-256. 150,000 names of a
// torch are one megabyte so.
std::uint64_t symbol_hash(std::string_view name);

struct ElfSymbols {
  std::vector<std::uint64_t> defined;  // hashes, sorted
  // Names that must be found, sorted: no weak ones, and none with a version of a library of glibc's, as versions are
  // compared apart (ElfFile::wanted_versions).
  std::vector<std::string> undefined;

  bool defines(std::uint64_t hash) const;
  bool operator==(const ElfSymbols&) const = default;
};

// Nothing unless it is a dynamic ELF file of 64 bits. Throws Format when the tables are broken or larger than any real
// one's.
ElfSymbols read_elf_symbols(ByteSource& elf);

}  // namespace sealift::bundle
