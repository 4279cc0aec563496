// SPDX-License-Identifier: Apache-2.0
// The kernel gives ld.so the program's entry point in AT_ENTRY, and ld.so jumps there when everything is loaded. Here
// that is our own code, which takes the variables out again and goes on to the program. ld.so has read them by then:
// search lists are copied when it starts.
// Sources: Linux, fs/binfmt_elf.c, create_elf_tables; glibc 2.17 to 2.40, elf/rtld.c (process_envvars, dl_main),
// elf/dl-load.c (_dl_init_paths), sysdeps/{x86_64,aarch64}/dl-machine.h (RTLD_START), sysdeps/aarch64/start.S.
#include "installer/start/host_loader.hpp"

#include <alloca.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <cstring>

#include "installer/start/program_image.hpp"

namespace sealift::installer {

namespace {

constexpr int kMaxVariables = 4;

struct Replaced {
  char* ours;
  char* before;  // of the host's environment; nullptr: it had none
  bool read_once;
};

Replaced replaced[kMaxVariables];
int replaced_count = 0;

std::size_t name_size(const char* variable) {
  return static_cast<std::size_t>(std::strchr(variable, '=') - variable) + 1;
}

bool same_name(const char* variable, const char* other) {
  return std::strncmp(variable, other, name_size(other)) == 0;
}

// Writes the value from before, which is never the longer one, over ours.
void forget(const Replaced& variable) {
  char* to = variable.ours;
  while (*to != '=') ++to;
  const char* from = variable.before;
  while (from != nullptr && *from != '=') ++from;
  while (from != nullptr && *++from != '\0') *++to = *from;
  *++to = '\0';
}

// Opens the dynamic linker that the program names. -1 when it names none, or there is none.
int open_linker(int program, const ProgramImage& image) {
  const Elf64_Phdr* const named = image.find(PT_INTERP);
  const Elf64_Phdr* const stack = image.find(PT_GNU_STACK);
  char path[PATH_MAX] = {};
  if (named == nullptr || stack == nullptr || (stack->p_flags & PF_X) != 0) return -1;
  if (named->p_filesz == 0 || named->p_filesz >= sizeof path) return -1;
  const auto size = static_cast<ssize_t>(named->p_filesz);
  if (::pread(program, path, named->p_filesz, static_cast<off_t>(named->p_offset)) != size) return -1;
  return ::open(path, O_RDONLY | O_CLOEXEC);
}

bool map_both(const char* path, ProgramImage& program, ProgramImage& linker) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const int linker_file = read_image(file, program) ? open_linker(file, program) : -1;
  const bool mapped = linker_file >= 0 && read_image(linker_file, linker) && linker.header.e_type == ET_DYN &&
                      map_image(linker_file, linker) && map_image(file, program) && program.segment_table() != 0;
  if (linker_file >= 0) ::close(linker_file);
  ::close(file);
  return mapped;
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) std::uintptr_t sealift_program_entry = 0;
__attribute__((visibility("hidden"))) void sealift_after_linker();

// Called with the program's first stack. The C library is the program's: none of ours is called here. A library's
// constructor may have copied the list of variables; the text in such a copy becomes the host's, or empty.
__attribute__((visibility("hidden"), used)) void sealift_restore_variables(std::uintptr_t* stack) {
  auto** const variables = reinterpret_cast<char**>(stack + 1 + stack[0] + 1);
  char** kept = variables;
  for (char** one = variables; *one != nullptr; ++one) {
    char* text = *one;
    for (int i = 0; i < replaced_count; ++i)
      if (text == replaced[i].ours) text = replaced[i].before;
    if (text != nullptr) *kept++ = text;
  }
  for (; *kept != nullptr; ++kept) *kept = nullptr;
  for (int i = 0; i < replaced_count; ++i)
    if (replaced[i].read_once) forget(replaced[i]);
}

}  // extern "C"

#if defined(__x86_64__)
// %rdx holds what the program's start must hand to atexit; the stack is aligned to 16.
asm(R"(
  .text
  .hidden sealift_after_linker
  .globl sealift_after_linker
  .type sealift_after_linker, @function
sealift_after_linker:
  mov %rsp, %rdi
  push %rdx
  push %rdx
  call sealift_restore_variables
  pop %rdx
  pop %rdx
  xor %ebp, %ebp
  jmp *sealift_program_entry(%rip)
)");
#elif defined(__aarch64__)
// x0 holds what the program's start must hand to atexit; the stack is aligned to 16. The first word is `bti c`.
asm(R"(
  .text
  .hidden sealift_after_linker
  .globl sealift_after_linker
  .type sealift_after_linker, %function
sealift_after_linker:
  hint #34
  mov x1, sp
  str x0, [sp, #-16]!
  mov x0, x1
  bl sealift_restore_variables
  ldr x0, [sp], #16
  mov x29, #0
  mov x30, #0
  adrp x16, sealift_program_entry
  ldr x16, [x16, #:lo12:sealift_program_entry]
  br x16
)");
#else
void sealift_after_linker() {}
#endif

namespace {

// The value of an auxiliary entry as the kernel would have it for the program.
std::uintptr_t auxiliary_value(const Elf64_auxv_t& entry, const ProgramImage& program, const ProgramImage& linker) {
  switch (entry.a_type) {
    case AT_PHDR:
      return program.segment_table();
    case AT_PHNUM:
      return program.header.e_phnum;
    case AT_ENTRY:
      return reinterpret_cast<std::uintptr_t>(&sealift_after_linker);
    case AT_BASE:
      return linker.base;
    default:
      return entry.a_un.a_val;
  }
}

// Our variable of this one's name, noted as its replacement; or the variable itself.
char* replacement_of(char* variable, const LinkerVariable* ours, int count) {
  for (int i = 0; i < count; ++i) {
    if (!same_name(variable, ours[i].text)) continue;
    if (replaced[i].before == nullptr) replaced[i].before = variable;  // of several, getenv's choice
    return ours[i].text;
  }
  return variable;
}

}  // namespace

void start_with(const LinkerVariable* ours, int count, const char* path, const Given& given) {
  static ProgramImage program, linker;
  if (count > kMaxVariables || !map_both(path, program, linker)) return;
  sealift_program_entry = program.entry();
  replaced_count = count;
  for (int i = 0; i < count; ++i)
    replaced[i] = {.ours = ours[i].text, .before = nullptr, .read_once = ours[i].read_once};

  const Elf64_auxv_t* const auxiliary = given.auxiliary;
  char** const variables = environ;
  std::size_t variable_count = 0;
  while (variables[variable_count] != nullptr) ++variable_count;
  std::size_t auxiliary_count = 1;  // AT_NULL is counted
  while (auxiliary[auxiliary_count - 1].a_type != AT_NULL) ++auxiliary_count;

  const auto arguments = static_cast<std::size_t>(given.count), further = static_cast<std::size_t>(count);
  const std::size_t words = 1 + arguments + 1 + variable_count + further + 1 + 2 * auxiliary_count;
  auto* const room = static_cast<char*>(alloca(words * sizeof(std::uintptr_t) + 16));
  auto* const stack =
      reinterpret_cast<std::uintptr_t*>((reinterpret_cast<std::uintptr_t>(room) + 15) & ~std::uintptr_t{15});
  std::uintptr_t* word = stack;
  const auto put = [&word](const char* text) { *word++ = reinterpret_cast<std::uintptr_t>(text); };
  *word++ = arguments;
  for (std::size_t i = 0; i <= arguments; ++i) put(given.values[i]);
  for (std::size_t i = 0; i < variable_count; ++i) put(replacement_of(variables[i], ours, count));
  for (int i = 0; i < count; ++i)
    if (replaced[i].before == nullptr) put(ours[i].text);
  put(nullptr);
  for (std::size_t i = 0; i < auxiliary_count; ++i) {
    *word++ = auxiliary[i].a_type;
    *word++ = auxiliary_value(auxiliary[i], program, linker);
  }
  unregister_restartable_sequences();
  jump_to(linker.entry(), stack);
}

}  // namespace sealift::installer
