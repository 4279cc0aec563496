// SPDX-License-Identifier: Apache-2.0
// Threads under an older container runtime, whose filter answers EPERM to each call that it does not know: glibc starts
// a thread by clone3, and takes clone where the kernel says that it has none (ENOSYS). So that is what it hears. Static
// programs alone are linked with it (--wrap=__clone3); elsewhere the system's C library has its own way.
#include <cerrno>
#include <cstddef>

extern "C" {

int __real___clone3(void* arguments, std::size_t size, int (*function)(void*), void* argument);

int __wrap___clone3(void* arguments, std::size_t size, int (*function)(void*), void* argument) {
  const int made = __real___clone3(arguments, size, function, argument);
  if (made == -1 && errno == EPERM) errno = ENOSYS;
  return made;
}
}
