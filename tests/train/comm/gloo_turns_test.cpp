// SPDX-License-Identifier: Apache-2.0
// Gloo's threads find the program's epoll_wait, and a thread that gets events again yields its core.
#include "tests/support/sanitized.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

/// Of this thread, counted in place of the C library's.
static thread_local int yields = 0;
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace {

TEST_CASE("libraries find the program's epoll_wait in place of the C library's") {
  void* found = dlsym(RTLD_DEFAULT, "epoll_wait");
  Dl_info info{};
  REQUIRE(dladdr(found, &info) != 0);
  CHECK(std::string(info.dli_fname).ends_with("collectives_test"));
}

TEST_CASE("epoll_wait gives events and times out as the C library's does") {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  const int event = eventfd(0, EFD_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN, .data = {.u64 = 7}};
  REQUIRE(epoll_ctl(poll, EPOLL_CTL_ADD, event, &wanted) == 0);
  epoll_event got[2];
  CHECK(epoll_wait(poll, got, 2, 0) == 0);
  const std::uint64_t one = 1;
  REQUIRE(write(event, &one, sizeof one) == sizeof one);
  const int before = yields;
  for (int call = 0; call < 3; ++call) {
    REQUIRE(epoll_wait(poll, got, 2, 1000) == 1);
    const std::uint64_t data = got[0].data.u64;  // epoll_event is packed, so nothing may refer into it
    CHECK(data == 7);
  }
  // After the first and the second. ThreadSanitizer has its own epoll_wait, which is found before the program's.
  if (!sealift::test::kUnderThreadSanitizer) CHECK(yields - before == 2);
  CHECK(epoll_wait(-1, got, 2, 0) == -1);
  CHECK(errno == EBADF);
  close(event);
  close(poll);
}

}  // namespace
