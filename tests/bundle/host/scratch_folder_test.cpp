// SPDX-License-Identifier: Apache-2.0
// Folders for intermediate files: gone when they are no longer needed, and removed later where a run was killed.
#include "bundle/host/scratch_folder.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "sealift/bundle/core/error.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
namespace fs = std::filesystem;

TEST_CASE("a scratch folder is new, its owner's alone, and gone with all that is in it") {
  const sealift::test::TempDir dir;
  fs::path path;
  {
    const ScratchFolder scratch("name", dir.path()), other("name", dir.path());
    path = scratch.path();
    CHECK(path.parent_path() == dir.path());
    CHECK(path.filename().string().starts_with("name-"));
    CHECK(other.path() != path);
    CHECK((fs::status(path).permissions() & fs::perms::mask) == fs::perms::owner_all);
    fs::create_directories(scratch / "a/b");
  }
  CHECK_FALSE(fs::exists(path));
  CHECK_REFUSED(ScratchFolder("name", dir / "missing"), Missing, "a temporary folder cannot be made");
}

TEST_CASE("what a killed run has left is removed by a later one, and what another holds is not") {
  const sealift::test::TempDir dir;
  const pid_t killed = ::fork();
  if (killed == 0) {
    const ScratchFolder left("name", dir.path());
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(killed, nullptr, 0);
  const auto count = [&] { return std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()); };
  const ScratchFolder held("name", dir.path());
  CHECK(count() == 2);
  ScratchFolder::remove_abandoned(dir.path(), "other");
  CHECK(count() == 2);
  ScratchFolder::remove_abandoned(dir.path(), "name");
  CHECK(count() == 1);
  CHECK(fs::exists(held.path()));
}
