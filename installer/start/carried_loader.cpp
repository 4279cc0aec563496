// SPDX-License-Identifier: Apache-2.0
// Sources: Linux, fs/binfmt_elf.c (what lies on a new program's stack); glibc, elf/rtld.c (ld.so takes arguments of its
// own when AT_ENTRY is its own entry).
#include "installer/start/carried_loader.hpp"

#include <alloca.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>

#include "installer/start/program_image.hpp"

namespace sealift::installer {

namespace {

// The value of an auxiliary entry as if the kernel had been asked to run the loader itself.
std::uintptr_t auxiliary_value(const Elf64_auxv_t& entry, const ProgramImage& image) {
  switch (entry.a_type) {
    case AT_PHDR:
      return image.segment_table();
    case AT_PHNUM:
      return image.header.e_phnum;
    case AT_ENTRY:
      return image.entry();
    case AT_BASE:
      return 0;
    default:
      return entry.a_un.a_val;
  }
}

}  // namespace

void start_through(const char* loader, const char* library_path, const char* program, const Given& given) {
  const int file = ::open(loader, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  ProgramImage image{};
  const bool mapped = read_image(file, image) && map_image(file, image);
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (!mapped) return;

  const char* const first[] = {loader,           "--argv0",    given.count > 0 ? given.values[0] : program,
                               "--library-path", library_path, program};
  const Elf64_auxv_t* const auxiliary = given.auxiliary;
  char** const variables = environ;
  std::size_t variable_count = 0;
  while (variables[variable_count] != nullptr) ++variable_count;
  std::size_t auxiliary_count = 1;  // AT_NULL is counted
  while (auxiliary[auxiliary_count - 1].a_type != AT_NULL) ++auxiliary_count;

  const auto followers = static_cast<std::size_t>(std::max(given.count - 1, 0));
  const std::size_t words = 1 + std::size(first) + followers + 1 + variable_count + 1 + 2 * auxiliary_count;
  auto* const room = static_cast<char*>(alloca(words * sizeof(std::uintptr_t) + 16));
  auto* const stack =
      reinterpret_cast<std::uintptr_t*>((reinterpret_cast<std::uintptr_t>(room) + 15) & ~std::uintptr_t{15});
  std::uintptr_t* word = stack;
  const auto put = [&word](const char* text) { *word++ = reinterpret_cast<std::uintptr_t>(text); };
  *word++ = std::size(first) + followers;
  for (const char* const text : first) put(text);
  for (std::size_t i = 0; i < followers; ++i) put(given.values[i + 1]);
  put(nullptr);
  for (std::size_t i = 0; i <= variable_count; ++i) put(variables[i]);
  for (std::size_t i = 0; i < auxiliary_count; ++i) {
    *word++ = auxiliary[i].a_type;
    *word++ = auxiliary_value(auxiliary[i], image);
  }
  unregister_restartable_sequences();
  jump_to(image.entry(), stack);
}

}  // namespace sealift::installer
