// SPDX-License-Identifier: Apache-2.0
// Sources: Linux, fs/binfmt_elf.c (how segments are mapped, and what lies on a new program's stack); glibc, elf/rtld.c
// (ld.so takes arguments of its own when AT_ENTRY is its own entry); System V ABI for x86-64, "Process Initialization".
#include "installer/start/carried_loader.hpp"

#include <alloca.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

namespace sealift::installer {

namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#else
constexpr int kMachine = EM_NONE;  // not supported: every loader is refused
#endif
constexpr int kMaxSegments = 32;
constexpr std::uintptr_t kPage = 4096;

constexpr std::uintptr_t page_of(std::uintptr_t address) {
  return address & ~(kPage - 1);
}

struct Image {
  Elf64_Ehdr header;
  Elf64_Phdr segments[kMaxSegments];
  std::uintptr_t base;  // where address 0 of the file lies
};

bool read_headers(int file, Image& image) {
  const Elf64_Ehdr& header = image.header;
  const bool good = ::pread(file, &image.header, sizeof header, 0) == ssize_t{sizeof header} &&
                    std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
                    header.e_type == ET_DYN && header.e_machine == kMachine && header.e_phnum <= kMaxSegments &&
                    header.e_phentsize == sizeof(Elf64_Phdr);
  const auto size = static_cast<ssize_t>(header.e_phnum * sizeof(Elf64_Phdr));
  if (good && ::pread(file, image.segments, static_cast<std::size_t>(size), static_cast<off_t>(header.e_phoff)) == size)
    return true;
  errno = ENOEXEC;
  return false;
}

bool map_segment(int file, const Elf64_Phdr& segment, std::uintptr_t base) {
  const int protection = ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) |
                         ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                         ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  const std::uintptr_t begin = base + segment.p_vaddr, first = page_of(begin);
  const std::uintptr_t file_end = begin + segment.p_filesz, end = begin + segment.p_memsz;
  if (::mmap(reinterpret_cast<void*>(first), file_end - first, protection, MAP_PRIVATE | MAP_FIXED, file,
             static_cast<off_t>(segment.p_offset - (begin - first))) == MAP_FAILED)
    return false;
  if (end == file_end) return true;
  // Bytes beyond the file are zero, to the end of the last page, as ld.so's first allocations expect.
  const std::uintptr_t next = page_of(file_end + kPage - 1);
  std::memset(reinterpret_cast<void*>(file_end), 0, next - file_end);
  return end <= next || ::mmap(reinterpret_cast<void*>(next), end - next, protection,
                               MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

bool map_image(int file, Image& image) {
  std::uintptr_t size = 0;
  for (int i = 0; i < image.header.e_phnum; ++i)
    if (image.segments[i].p_type == PT_LOAD)
      size = std::max(size, image.segments[i].p_vaddr + image.segments[i].p_memsz);
  void* const place = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return false;
  image.base = reinterpret_cast<std::uintptr_t>(place);
  for (int i = 0; i < image.header.e_phnum; ++i)
    if (image.segments[i].p_type == PT_LOAD && !map_segment(file, image.segments[i], image.base)) return false;
  return true;
}

// The value of an auxiliary entry as if the kernel had been asked to run the loader itself.
std::uintptr_t auxiliary_value(const Elf64_auxv_t& entry, const Image& image) {
  switch (entry.a_type) {
    case AT_PHDR:
      return image.base + image.header.e_phoff;
    case AT_PHNUM:
      return image.header.e_phnum;
    case AT_ENTRY:
      return image.base + image.header.e_entry;
    case AT_BASE:
      return 0;
    default:
      return entry.a_un.a_val;
  }
}

// The kernel takes one registration of restartable sequences per thread, and the carried C library needs it.
void unregister_restartable_sequences() {
#ifdef RSEQ_SIG
  constexpr unsigned kSize = 32;
  constexpr int kUnregister = 1;
  if (__rseq_size != 0)
    ::syscall(SYS_rseq, static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset, kSize, kUnregister, RSEQ_SIG);
#endif
}

[[noreturn]] void jump([[maybe_unused]] std::uintptr_t entry, [[maybe_unused]] const std::uintptr_t* stack) {
#if defined(__x86_64__)
  asm volatile(
      "mov %1, %%rsp\n\t"
      "xor %%ebp, %%ebp\n\t"
      "xor %%edx, %%edx\n\t"
      "jmp *%0"
      :
      : "a"(entry), "c"(stack)
      : "memory", "rdx");
#endif
  __builtin_unreachable();
}

}  // namespace

void start_through(const char* loader, const char* library_path, const char* program, int argc, char** argv) {
  const int file = ::open(loader, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  Image image{};
  const bool mapped = read_headers(file, image) && map_image(file, image);
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (!mapped) return;

  const char* const first[] = {loader,           "--argv0",    argc > 0 ? argv[0] : program,
                               "--library-path", library_path, program};
  char** const variables = argv + argc + 1;
  std::size_t variable_count = 0;
  while (variables[variable_count] != nullptr) ++variable_count;
  const auto* const auxiliary = reinterpret_cast<const Elf64_auxv_t*>(variables + variable_count + 1);
  std::size_t auxiliary_count = 1;  // AT_NULL is counted
  while (auxiliary[auxiliary_count - 1].a_type != AT_NULL) ++auxiliary_count;

  const auto followers = static_cast<std::size_t>(std::max(argc - 1, 0));
  const std::size_t words = 1 + std::size(first) + followers + 1 + variable_count + 1 + 2 * auxiliary_count;
  auto* const room = static_cast<char*>(alloca(words * sizeof(std::uintptr_t) + 16));
  auto* const stack =
      reinterpret_cast<std::uintptr_t*>((reinterpret_cast<std::uintptr_t>(room) + 15) & ~std::uintptr_t{15});
  std::uintptr_t* word = stack;
  const auto put = [&word](const char* text) { *word++ = reinterpret_cast<std::uintptr_t>(text); };
  *word++ = std::size(first) + followers;
  for (const char* const text : first) put(text);
  for (std::size_t i = 0; i < followers; ++i) put(argv[i + 1]);
  put(nullptr);
  for (std::size_t i = 0; i <= variable_count; ++i) put(variables[i]);
  for (std::size_t i = 0; i < auxiliary_count; ++i) {
    *word++ = auxiliary[i].a_type;
    *word++ = auxiliary_value(auxiliary[i], image);
  }
  unregister_restartable_sequences();
  jump(image.base + image.header.e_entry, stack);
}

}  // namespace sealift::installer
