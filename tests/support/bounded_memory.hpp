// SPDX-License-Identifier: Apache-2.0
// A bound on what this process may map beyond what it has, as long as a value of this lives.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#if defined(__SANITIZE_ADDRESS__)
#define SEALIFT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEALIFT_SANITIZED 1
#endif
#endif

namespace sealift::test {

class BoundedMemory {
 public:
  explicit BoundedMemory(std::uint64_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
#ifndef SEALIFT_SANITIZED
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit bound{.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + more,
                       .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &bound);
#else
    static_cast<void>(more);  // the sanitizer maps terabytes
#endif
  }
  BoundedMemory(const BoundedMemory&) = delete;
  BoundedMemory& operator=(const BoundedMemory&) = delete;
  ~BoundedMemory() {
    ::setrlimit(RLIMIT_AS, &before_);
  }

 private:
  rlimit before_{};
};

}  // namespace sealift::test
