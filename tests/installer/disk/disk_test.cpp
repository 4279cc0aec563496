// SPDX-License-Identifier: Apache-2.0
// The real disk by itself: what it refuses to do, and what it says of free space.
#include "installer/disk/disk.hpp"

#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

TEST_CASE("the disk never follows a link or overwrites a file, and names what stands in a folder's place") {
  const TempDir dir;
  Disk disk;
  write_file(dir / "file", "old");
  fs::create_symlink("file", dir / "link");
  CHECK_REFUSED(disk.create(dir / "file", 0444), Io, "file");
  CHECK_REFUSED(disk.create(dir / "link", 0444), Io, "link");
  CHECK_REFUSED(disk.make_folder(dir / "file"), Conflict, "file");
  CHECK(read_file(dir / "file") == "old");
  disk.make_folders(dir / "a/b/c");
  write_file(dir / "a/b/c/x", "x");
  disk.make_folder(dir / "empty");
  CHECK_REFUSED(disk.rename(dir / "empty", dir / "a"), Conflict, "/a");
  fs::create_directory_symlink(dir / "a", dir / "a/loop");
  disk.remove_tree(dir / "a/loop");
  CHECK(fs::exists(dir / "a/b/c/x"));
  // Others write to this disk between the two questions, but not always.
  bool same = false;
  for (int i = 0; i < 1000 && !same; ++i)
    same = disk.free_space(dir / "not/there/yet").bytes == disk.free_space(dir.path()).bytes;
  CHECK(same);
}

TEST_CASE("nothing below an anchor is reached through a link, however its folder is spelled") {
  const TempDir dir;
  fs::create_directories(dir / "root/real");
  fs::create_directory(dir / "outside");
  fs::create_directory_symlink("../outside", dir / "root/way");
  for (const fs::path& root : {dir / "root", dir / "root/", dir / "root//"}) {
    CAPTURE(root);
    Disk disk;
    disk.anchor(root);
    CHECK_REFUSED(disk.create(root / "way/file", 0644), Conflict, "a link or a file stands where a folder");
    CHECK_REFUSED(disk.open_folder(root / "way"), Conflict, "a link or a file stands where a folder");
    CHECK(!fs::exists(dir / "outside/file"));
    disk.create(root / "real/file", 0644);
    disk.remove_tree(root / "real/file");
  }
}
