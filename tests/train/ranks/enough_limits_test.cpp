// SPDX-License-Identifier: Apache-2.0
// Limits of files and threads: what is enough, what is raised, and what is refused with its value and the need.
// Limits are set in a child, as another account where this one is root, for whom the kernel does not count.
#include "trainer/ranks/enough_limits.hpp"

#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

using namespace sealift::trainer;

namespace {

constexpr int kGood = 7, kSkipped = 77;

/// The exit code of a child that does `body`, which says what went wrong on stderr.
int in_child(const std::function<int()>& body) {
  const auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool says(const std::exception& error, const std::string& part) {
  return std::string(error.what()).find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("files: the own limit is raised as far as it may be, and one that is too low is told with the need") {
  const auto with_files = [](rlim_t now, rlim_t most, std::int64_t need) {
    return in_child([=] {
      const rlimit limit{now, most};
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
      try {
        require_files(need);
      } catch (const std::exception& error) {
        return says(error, "may open 20 files (ulimit -Hn), and its part of this job needs 36") ? kGood : 2;
      }
      rlimit after{};
      getrlimit(RLIMIT_NOFILE, &after);
      return after.rlim_cur >= static_cast<rlim_t>(need) ? 0 : 3;
    });
  };
  CHECK(with_files(20, 64, 36) == 0);
  CHECK(with_files(64, 64, 36) == 0);
  CHECK(with_files(20, 20, 36) == kGood);
  CHECK(files_needed(4) == 36);
  CHECK(files_needed(1000) > 2000);
}

TEST_CASE("threads: those that cannot be started are told with the limits and the need, before any is missed") {
  CHECK_NOTHROW(require_threads(16));
  CHECK(threads_needed(4, 2) == 40);
  const auto got = in_child([] {
    const rlimit few{12, 12};
    if (setrlimit(RLIMIT_NPROC, &few) != 0) return kSkipped;
    if (geteuid() == 0 && setresuid(54321, 54321, 54321) != 0) return kSkipped;
    try {
      require_threads(40);
    } catch (const std::exception& error) {
      const bool named = says(error, "more threads can be started, and this job needs 40") &&
                         says(error, "this account may have 12 processes and threads (ulimit -u)");
      return named ? kGood : 2;
    }
    return kSkipped;  // a kernel that does not count
  });
  CHECK((got == kGood || got == kSkipped));
  WARN(got == kGood);
}

TEST_CASE("threads: the limit of a group is named with its file and how many are in it") {
  const sealift::test::TempDir root;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  write("proc/self/cgroup", "0::/job\n");
  write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("sys/fs/cgroup/job/pids.max", "50\n");
  write("sys/fs/cgroup/job/pids.current", "45\n");
  const auto text = limits_of_threads(root.path());
  CHECK_MESSAGE(text.find("its group 50 (" + (root / "sys/fs/cgroup/job/pids.max").string() + ", 45 are in it)") !=
                    std::string::npos,
                text);
}
