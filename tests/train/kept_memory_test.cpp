// SPDX-License-Identifier: Apache-2.0
// Page faults of blocks that are freed and asked for again, each in a process of its own.
#include "trainer/kept_memory.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace {

long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Writes blocks of 48 MB and 8 MB, and frees them.
void use_memory() {
  for (const std::size_t size : {std::size_t{48} << 20, std::size_t{8} << 20}) {
    void* block = std::malloc(size);
    std::memset(block, 1, size);
    asm volatile("" : : "r"(block) : "memory");  // or the compiler leaves it all out
    std::free(block);
  }
}

/// Whether using memory again costs hardly a page fault, after `prepare`.
template <class Prepare>
bool stays(const Prepare& prepare) {
  const auto child = fork();
  if (child == 0) {
    prepare();
    use_memory();
    const auto before = faults();
    use_memory();
    _exit(faults() - before < 100 ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("memory that was freed is used again without page faults, unless the environment says otherwise") {
  CHECK(stays([] { sealift::trainer::keep_freed_memory(); }));
  CHECK_FALSE(stays([] {}));
  CHECK_FALSE(stays([] {
    setenv("MALLOC_TRIM_THRESHOLD_", "131072", 1);
    sealift::trainer::keep_freed_memory();
  }));
}
