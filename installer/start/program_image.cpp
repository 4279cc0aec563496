// SPDX-License-Identifier: Apache-2.0
// Sources: Linux, fs/binfmt_elf.c (how segments are mapped); System V ABI for x86-64, "Process Initialization",
// and for aarch64 ("AAPCS64 sysvabi64", the same section).
#include "installer/start/program_image.hpp"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace sealift::installer {

namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;  // not supported: every program is refused
#endif
constexpr std::uintptr_t kMaxAlignment = std::uintptr_t{1} << 30;
constexpr std::uintptr_t kMaxAddress = std::uintptr_t{1} << 46;

// 4 KiB on x86-64; 4, 16 or 64 KiB on aarch64, as its kernel was built.
std::uintptr_t page_size() {
  static const std::uintptr_t size = ::getauxval(AT_PAGESZ);
  return size != 0 ? size : 4096;
}

std::uintptr_t page_of(std::uintptr_t address) {
  return address & ~(page_size() - 1);
}

bool map_segment(int file, const Elf64_Phdr& segment, std::uintptr_t base) {
  if (segment.p_memsz == 0) return true;
  const int protection = ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) |
                         ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                         ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  const std::uintptr_t begin = base + segment.p_vaddr, first = page_of(begin);
  const std::uintptr_t file_end = begin + segment.p_filesz, end = begin + segment.p_memsz;
  if (segment.p_filesz != 0 &&
      ::mmap(reinterpret_cast<void*>(first), file_end - first, protection, MAP_PRIVATE | MAP_FIXED, file,
             static_cast<off_t>(segment.p_offset - (begin - first))) == MAP_FAILED)
    return false;
  if (end == file_end) return true;
  // Bytes beyond the file are zero, to the end of the last page, as ld.so's first allocations expect.
  const std::uintptr_t next = segment.p_filesz == 0 ? first : page_of(file_end + page_size() - 1);
  if (next > file_end) std::memset(reinterpret_cast<void*>(file_end), 0, next - file_end);
  return end <= next || ::mmap(reinterpret_cast<void*>(next), end - next, protection,
                               MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

struct Extent {
  std::uintptr_t first = kMaxAddress, end = 0, alignment = page_size();

  explicit Extent(const ProgramImage& image) {
    for (int i = 0; i < image.header.e_phnum; ++i) {
      const Elf64_Phdr& segment = image.segments[i];
      if (segment.p_type != PT_LOAD) continue;
      if (segment.p_vaddr > kMaxAddress || segment.p_memsz > kMaxAddress || segment.p_filesz > segment.p_memsz) return;
      first = std::min(first, page_of(segment.p_vaddr));
      end = std::max<std::uintptr_t>(end, segment.p_vaddr + segment.p_memsz);
      if ((segment.p_align & (segment.p_align - 1)) == 0 && segment.p_align <= kMaxAlignment)
        alignment = std::max<std::uintptr_t>(alignment, segment.p_align);
    }
  }
};

// Room for all segments; MAP_FAILED when there is none.
void* reserve(const ProgramImage& image, const Extent& extent) {
  const std::uintptr_t size = extent.end - extent.first;
  if (image.header.e_type == ET_DYN)
    return ::mmap(nullptr, size + extent.alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const wanted = reinterpret_cast<void*>(extent.first);
  void* const got = ::mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted || got == MAP_FAILED) return got;
  ::munmap(got, size);  // an old kernel, which takes the flag for a wish
  errno = EEXIST;
  return MAP_FAILED;
}

}  // namespace

std::uintptr_t ProgramImage::segment_table() const {
  for (int i = 0; i < header.e_phnum; ++i)
    if (const Elf64_Phdr& one = segments[i];
        one.p_type == PT_LOAD && one.p_offset <= header.e_phoff && header.e_phoff - one.p_offset < one.p_filesz)
      return base + one.p_vaddr + (header.e_phoff - one.p_offset);
  return 0;
}

const Elf64_Phdr* ProgramImage::find(std::uint32_t type) const {
  for (int i = 0; i < header.e_phnum; ++i)
    if (segments[i].p_type == type) return &segments[i];
  return nullptr;
}

bool read_image(int file, ProgramImage& image) {
  const Elf64_Ehdr& header = image.header;
  const bool good = ::pread(file, &image.header, sizeof header, 0) == ssize_t{sizeof header} &&
                    std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                    (header.e_type == ET_DYN || header.e_type == ET_EXEC) && header.e_machine == kMachine &&
                    header.e_phnum <= ProgramImage::kMaxSegments && header.e_phentsize == sizeof(Elf64_Phdr);
  const auto size = static_cast<ssize_t>(header.e_phnum * sizeof(Elf64_Phdr));
  if (good && ::pread(file, image.segments, static_cast<std::size_t>(size), static_cast<off_t>(header.e_phoff)) == size)
    return true;
  errno = ENOEXEC;
  return false;
}

bool map_image(int file, ProgramImage& image) {
  const Extent extent(image);
  if (extent.end <= extent.first) {
    errno = ENOEXEC;
    return false;
  }
  void* const place = reserve(image, extent);
  if (place == MAP_FAILED) return false;
  const std::uintptr_t room = reinterpret_cast<std::uintptr_t>(place);
  image.base =
      image.header.e_type == ET_EXEC ? 0 : ((room + extent.alignment - 1) & ~(extent.alignment - 1)) - extent.first;
  for (int i = 0; i < image.header.e_phnum; ++i)
    if (image.segments[i].p_type == PT_LOAD && !map_segment(file, image.segments[i], image.base)) return false;
  return true;
}

// The kernel takes one registration of restartable sequences per thread, and the next C library needs it.
void unregister_restartable_sequences() {
#ifdef RSEQ_SIG
  constexpr unsigned kSize = 32;
  constexpr int kUnregister = 1;
  if (__rseq_size != 0)
    ::syscall(SYS_rseq, static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset, kSize, kUnregister, RSEQ_SIG);
#endif
}

void jump_to([[maybe_unused]] std::uintptr_t entry, [[maybe_unused]] const std::uintptr_t* stack) {
#if defined(__x86_64__)
  asm volatile(
      "mov %1, %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "xor %%edx, %%edx\n\t"
      "jmp *%0"
      :
      : "a"(entry), "c"(stack)
      : "memory", "rdx");
#elif defined(__aarch64__)
  asm volatile(
      "mov sp, %1\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "mov x0, #0\n\t"
      "br %0"
      :
      : "r"(entry), "r"(stack)
      : "memory", "x0", "x29", "x30");
#endif
  __builtin_unreachable();
}

}  // namespace sealift::installer
