// SPDX-License-Identifier: Apache-2.0
// Memory that a step frees stays with the process, for the next step.
// For programs: the first thing that main does; a library has no say in its program's malloc.
// glibc gives large blocks and the heap's end back to the kernel, which zeroes each page that is asked for again: of a
// step of a model of 100 million parameters on a CPU, a twelfth of the processor's time.
#pragma once

#include <cstdlib>  // defines __GLIBC__
#include <initializer_list>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace sealift::trainer {

/// Tells glibc's malloc to keep what is freed, unless the environment tells it something itself. Elsewhere, nothing.
inline void keep_freed_memory() {
#ifdef __GLIBC__
  for (const auto* name : {"MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"}) {
    if (std::getenv(name)) return;
  }
  mallopt(M_MMAP_MAX, 0);         // no block of its own mapping, which free would unmap
  mallopt(M_TRIM_THRESHOLD, -1);  // and none of the heap's end
#endif
}

}  // namespace sealift::trainer
