// SPDX-License-Identifier: Apache-2.0
// Neither a crash nor a debugger gets at what sealift-pack has in memory; nor do the programs that it starts leave a
// core.
#include "packager/host/private_memory.hpp"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "packager/host/process.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using test::read_file;
using test::TempDir;
using test::write_file;
namespace fs = std::filesystem;

TEST_CASE("a process that keeps its memory private leaves no core and lets no debugger in") {
  const pid_t child = ::fork();
  if (child == 0) {
    keep_memory_private();
    rlimit limit{1, 1};
    ::getrlimit(RLIMIT_CORE, &limit);
    ::_exit(limit.rlim_cur == 0 && limit.rlim_max == 0 && ::prctl(PR_GET_DUMPABLE) == 0 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("sealift-pack does so before it does anything else") {
  const TempDir dir;
  // As uv, asked for a Python by sealift-pack: what it is started by.
  write_file(dir / "uv", "#!/bin/sh\ncat /proc/$PPID/limits > " + (dir / "limits").string() + "\nexit 1\n");
  fs::permissions(dir / "uv", fs::perms(0755));
  write_file(
      dir / "job.toml",
      "name = \"demo\"\nversion = 1\n[target]\narch = \"x86_64\"\nglibc = \"2.36\"\n[python]\nversion = \"3.11\"\n"
      "requirements = [\"demo\"]\n");
  run_process({"sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh", SEALIFT_PACK, "lock", (dir / "job.toml").string(),
               "--uv", (dir / "uv").string(), "--cache", (dir / "cache").string()});
  const std::string limits = read_file(dir / "limits");
  const std::size_t line = limits.find("Max core file size");
  REQUIRE(line != limits.npos);
  CHECK(limits.substr(line, limits.find('\n', line) - line).find(" 0                    0 ") != std::string::npos);
}
