// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker would read of a 64-bit little-endian ELF file: needed libraries, search paths, symbol
// versions wanted and offered. Bounds-checked, since wheels and hosts are not ours.
// Format: System V ABI, "Object Files" and "Dynamic Linking"; symbol versioning as in the LSB.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sealift/bundle/core/byte_source.hpp"
#include "sealift/bundle/core/version.hpp"

namespace sealift::bundle {

struct ElfFile {
  std::string arch;        // as `uname -m` prints it; "machine N" for others
  std::uint16_t type = 0;  // ET_DYN, ET_EXEC, ET_REL, ... of <elf.h>
  bool dynamic = false;
  std::string interpreter;  // PT_INTERP, empty when there is none
  std::string soname;
  std::vector<std::string> needed;
  std::string rpath;                                             // DT_RPATH, as written
  std::string runpath;                                           // DT_RUNPATH, as written
  std::map<std::string, std::set<std::string>> wanted_versions;  // library -> e.g. GLIBC_2.34; weak ones left out
  std::set<std::string> offered_versions;
  bool executable_stack = false;  // asked for, or not stated, which means the same
  bool text_relocations = false;
  std::string cpu_floor;     // the level that its x86 property note asks for: "x86-64-v3"; ld.so refuses older ones
  std::string kernel_floor;  // the oldest Linux that its ABI note asks for: "3.2.0"

  // The newest GLIBC_x.y that is wanted, from whichever library.
  std::optional<GlibcVersion> glibc_floor() const;
  // The newest GLIBC_x.y that is offered; a C library may be newer than that (libc_version.hpp).
  std::optional<GlibcVersion> glibc_offered() const;
};

// std::nullopt when this is no ELF file; throws Format when it is a broken one.
std::optional<ElfFile> read_elf(ByteSource& source);

}  // namespace sealift::bundle
