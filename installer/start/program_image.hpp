// SPDX-License-Identifier: Apache-2.0
// An ELF file in this process's memory, as the kernel would have it there after execve. First step of carried_loader
// and of host_loader, which become another program without execve. Part of sealift-start. Source: Linux,
// fs/binfmt_elf.c (how segments are mapped).
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace sealift::installer {

struct ProgramImage {
  static constexpr int kMaxSegments = 32;

  Elf64_Ehdr header;
  Elf64_Phdr segments[kMaxSegments];
  std::uintptr_t base;  // where address 0 of the file lies; 0 for a program with a fixed place

  std::uintptr_t entry() const { return base + header.e_entry; }
  // Where its segment table lies in memory; 0 when no segment holds it.
  std::uintptr_t segment_table() const;
  // The first segment of a type, or nullptr.
  const Elf64_Phdr* find(std::uint32_t type) const;
};

// Reads the headers of a program for this machine, of ELF type ET_DYN or ET_EXEC. False, with errno, for any other
// file.
bool read_image(int file, ProgramImage& image);

// Maps its segments. False, with errno, when that is impossible: a fixed place that is taken, too.
bool map_image(int file, ProgramImage& image);

// Gives up the kernel's registration of this thread's restartable sequences, so that another C library can have it.
void unregister_restartable_sequences();

// Leaves this program for good: `stack` is a new program's first stack.
[[noreturn]] void jump_to(std::uintptr_t entry, const std::uintptr_t* stack);

}  // namespace sealift::installer
