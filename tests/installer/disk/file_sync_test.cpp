// SPDX-License-Identifier: Apache-2.0
// Kernels whose syncfs does not tell of failures, and what is done there instead.
#include "installer/disk/file_sync.hpp"

#include <sys/stat.h>

#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

TEST_CASE("syncfs is believed from Linux 5.8 on, and nowhere else") {
  for (const char* release : {"5.8.0", "5.10.0-28-amd64", "5.14.0-427.el9.x86_64", "6.1.0-21-amd64", "10.0"})
    CHECK(syncfs_reports_failures(release));
  for (const char* release : {"5.7.19", "4.18.0-553.el8.x86_64", "4.19.90-52.22.v2207.ky10.x86_64", "3.10.0-1160.el7",
                              "5", "5.", "", "x.y", "-6.1"})
    CHECK(!syncfs_reports_failures(release));
}

TEST_CASE("each plain file below a folder is synced, links and other things are left, and what cannot be is named") {
  const TempDir dir;
  std::filesystem::create_directories(dir / "a/b");
  write_file(dir / "one", "1");
  write_file(dir / "a/two", "2");
  write_file(dir / "a/b/three", "3");
  std::filesystem::create_symlink("/dev/full", dir / "a/link");
  std::filesystem::create_symlink("missing", dir / "a/dangling");
  REQUIRE(::mkfifo((dir / "a/pipe").c_str(), 0600) == 0);  // opening it would wait for ever
  CHECK(sync_each_file(dir.path()) == 3);
  CHECK(sync_each_file(dir / "a/b") == 1);
  CHECK_THROWS(sync_each_file(dir / "not-there"));
}
