// SPDX-License-Identifier: Apache-2.0
// What the kernel gave sealift-start to begin with, which the program that it becomes gets in turn. Taken before a
// variable is changed: the C library moves the kernel's own list of them, behind which the auxiliary vector lies.
#pragma once

#include <elf.h>

namespace sealift::installer {

struct Given {
  int count;  // of arguments, argv[0] included
  char** values;
  const Elf64_auxv_t* auxiliary;
};

inline Given given_to_main(int argc, char** argv) {
  char** variable = argv + argc + 1;
  while (*variable != nullptr) ++variable;
  return {.count = argc, .values = argv, .auxiliary = reinterpret_cast<const Elf64_auxv_t*>(variable + 1)};
}

}  // namespace sealift::installer
