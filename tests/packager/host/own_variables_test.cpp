// SPDX-License-Identifier: Apache-2.0
// HOME and its like under `sudo -E`: what lies in another user's folders decides nothing that is run here. Folders that
// all may write stand for those of another user, so that a caller who is not root can test it too.
#include "packager/host/own_variables.hpp"

#include <doctest/doctest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "bundle/host/scratch_folder.hpp"
#include "packager/files/cache.hpp"
#include "packager/host/process.hpp"
#include "packager/host/uv.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

// A variable with another value, until the end.
class VariableSet {
 public:
  VariableSet(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~VariableSet() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// A folder that all may write, so that nobody knows who lays down what there.
fs::path open_to_all(const fs::path& folder) {
  fs::create_directories(folder);
  REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  return folder;
}

}  // namespace

TEST_CASE("no program gets a variable that leads into another user's folders; of HOME it gets the account's own") {
  const TempDir dir;
  const fs::path theirs = open_to_all(dir / "theirs");
  fs::create_directories(dir / "mine");
  const VariableSet home("HOME", theirs), cache("XDG_CACHE_HOME", theirs / "cache"), uv("UV_CACHE_DIR", theirs / "uv"),
      pythons("UV_PYTHON_INSTALL_DIR", theirs), data("XDG_DATA_HOME", dir / "mine"),
      named("SSL_CERT_FILE", theirs / "ca");
  CHECK(own_variable("HOME") == std::string(::getpwuid(::geteuid())->pw_dir));
  CHECK_FALSE(own_variable("XDG_CACHE_HOME"));
  CHECK(own_variable("XDG_DATA_HOME") == (dir / "mine").string());
  CHECK(own_variable("SSL_CERT_FILE") == (theirs / "ca").string());  // the caller has named it
  CHECK(foreign_variables().size() == 4);
  CHECK(foreign_variables().at(0) == "HOME=" + theirs.string() + ", where others may write");
  write_file(dir / "env", "#!/bin/sh\nenv\nulimit -d\n");
  fs::permissions(dir / "env", fs::perms::owner_all);
  const std::string seen = run_uv({(dir / "env").string()}).out;
  CHECK(seen.find(theirs.string() + "\n") == seen.npos);
  CHECK(seen.find("UV_CACHE_DIR") == seen.npos);
  CHECK(seen.find("UV_PYTHON_INSTALL_DIR") == seen.npos);
  CHECK(seen.ends_with("\n4194304\n"));  // KiB of memory: a page of an index may have no end
  if (::geteuid() == 0) {
    REQUIRE(::chown((dir / "mine").c_str(), 4711, 4711) == 0);
    CHECK_FALSE(own_variable("XDG_DATA_HOME"));
    CHECK(foreign_variables().at(2).ends_with("of user 4711"));
  }
}

TEST_CASE("a cache where others may write holds files by their digest, and nothing that is run or built") {
  const TempDir dir;
  fs::path root = dir / "cache";
  if (fs::is_directory("/dev/shm") && ::access("/dev/shm", W_OK) == 0) {  // another file system, mostly
    std::string made = "/dev/shm/sealift-test-XXXXXX";
    REQUIRE(::mkdtemp(made.data()) != nullptr);
    root = made;
  }
  CHECK(Cache(root).scratch() == root / "scratch");
  CHECK(Cache(root).builds() == root / "builds");
  fs::path work;
  {
    const Cache shared(open_to_all(root));
    work = shared.scratch();
    CHECK(work.parent_path() != root);
    CHECK((fs::status(work).permissions() & fs::perms::mask) == fs::perms::owner_all);
    CHECK(shared.builds().parent_path() == work);
    write_file(work / "file", "bytes");
    const bundle::Digest digest = bundle::sha256(bundle::as_bytes("bytes"));
    shared.adopt(work / "file", digest);
    CHECK(read_file(shared.path(digest)) == "bytes");
    CHECK(fs::is_empty(root / "scratch"));
  }
  CHECK_FALSE(fs::exists(work));
  fs::remove_all(root);
}

TEST_CASE("the cache is in the account's own home where HOME is another user's") {
  const TempDir dir;
  const VariableSet home("HOME", open_to_all(dir / "theirs")), cache("XDG_CACHE_HOME", dir / "theirs/cache");
  ::unsetenv("SEALIFT_CACHE");
  CHECK(Cache::default_root() == fs::path(::getpwuid(::geteuid())->pw_dir) / ".cache/sealift");
}

TEST_CASE("temporary files are not made in another user's TMPDIR") {
  const TempDir dir;
  const VariableSet temporary("TMPDIR", open_to_all(dir / "theirs"));
  CHECK(bundle::ScratchFolder("name").path().parent_path() == "/tmp");
  REQUIRE(::chmod((dir / "theirs").c_str(), 01777) == 0);
  CHECK(bundle::ScratchFolder("name").path().parent_path() == dir / "theirs");
}
