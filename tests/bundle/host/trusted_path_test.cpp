// SPDX-License-Identifier: Apache-2.0
// Whom a path is trusted to: each folder and link on the way, by owner and mode, for root and for a user.
#include "bundle/host/trusted_path.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "bundle/host/require_trusted.hpp"
#include "sealift/bundle/core/file.hpp"
#include "tests/support/other_user.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift;
using namespace sealift::bundle;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

constexpr uid_t kMallory = 4711, kAlice = 1234;

// "" where it is trusted; else what is wrong with which path.
std::string fault_of(const fs::path& path, Above above) {
  PathFault fault;
  if (!find_path_fault(path.c_str(), above, fault)) return "";
  const char* const kinds[] = {"owner ", "writable ", "unseen "};
  return kinds[static_cast<int>(fault.kind)] + std::string(fault.path);
}
std::string strictly(const fs::path& path) {
  return fault_of(path, Above::Nobody);
}
std::string of_site(const fs::path& path) {
  return fault_of(path, Above::Site);
}

void as(uid_t user, const std::function<void()>& act) {
  REQUIRE(::seteuid(user) == 0);
  act();
  REQUIRE(::seteuid(0) == 0);
}

struct Folders {
  TempDir dir;
  fs::path above = dir / "above", below = above / "below", file = below / "file";

  Folders() {
    fs::create_directories(below);
    write_file(file, "x");
    fs::permissions(dir.path(), fs::perms(0755));
  }
};

}  // namespace

TEST_CASE("a path is trusted while nobody else may write it, or what lies above it") {
  const Folders made;
  CHECK(strictly(made.file) == "");
  CHECK(strictly(made.below / "not/there") == "");
  CHECK(strictly(made.below / "../below/./file") == "");
  for (const fs::path& path : {made.above, made.below, made.file}) {
    const fs::perms was = fs::status(path).permissions();
    fs::permissions(path, was | fs::perms::others_write);
    CHECK(strictly(made.file) == "writable " + path.string());
    CHECK(of_site(made.file) == "writable " + path.string());
    fs::permissions(path, was);
  }
  fs::permissions(made.above, fs::perms(01777));  // as /tmp is: what we own there stays
  CHECK(strictly(made.file) == "");
  CHECK(strictly(made.above) == "writable " + made.above.string());  // itself it is everybody's
  CHECK(strictly(made.above / "not there") == "");
  fs::permissions(made.above, fs::perms(0755));
  const fs::path here = fs::current_path();
  fs::current_path(made.above);
  CHECK(strictly("below/file") == "");
  fs::permissions(made.below, fs::perms(0777));
  CHECK(strictly("below/file") == "writable " + made.below.string());
  fs::current_path(here);
}

TEST_CASE("links are followed, and each folder on their way is looked at") {
  const Folders made;
  const fs::path other = made.dir / "other";
  fs::create_directory(other);
  fs::create_symlink("../above/below", other / "relative");
  fs::create_symlink(other / "relative", made.dir / "chain");
  CHECK(strictly(made.dir / "chain/file") == "");
  fs::permissions(other, fs::perms(0777));
  CHECK(strictly(made.dir / "chain/file") == "writable " + other.string());
  fs::permissions(other, fs::perms(0755));
  fs::permissions(made.above, fs::perms(0777));
  CHECK(strictly(made.dir / "chain/file") == "writable " + made.above.string());
  fs::permissions(made.above, fs::perms(0755));
  fs::create_symlink("circle", made.dir / "circle");
  CHECK(strictly(made.dir / "circle") == "unseen " + (made.dir / "circle").string());
  CHECK_REFUSED(require_trusted_path(made.dir / "circle", Above::Site, "x"), Io, "circle");
  const Descriptor stream(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK(strictly("/dev/fd/" + std::to_string(stream.get())) == "");  // what is open already
  CHECK(strictly("/dev/null") == "");
  CHECK(strictly("/" + std::string(300, 'x')).starts_with("unseen"));
  CHECK(strictly("/" + std::string(20'000, 'x')).starts_with("unseen"));
}

TEST_CASE("root trusts nothing of another user's, and a user nothing but root's and their own") {
  if (!is_root()) return;
  const Folders made;
  for (const fs::path& path : {made.above, made.below, made.file}) {
    CAPTURE(path.string());
    REQUIRE(::chown(path.c_str(), kMallory, kMallory) == 0);
    CHECK(strictly(made.file) == "owner " + path.string());
    CHECK(of_site(made.file) == "owner " + path.string());
    as(kAlice, [&] { CHECK(strictly(made.file) == "owner " + path.string()); });
    as(kMallory, [&] { CHECK(strictly(made.file) == ""); });
    // A user's prefix may lie below a project's folder, but is their own.
    as(kAlice, [&] { CHECK(of_site(made.file) == (path == made.file ? "owner " + path.string() : "")); });
    REQUIRE(::chown(path.c_str(), 0, 0) == 0);
  }
  const fs::path link = made.dir / "link", tmp = made.dir / "tmp";
  fs::create_directory(tmp);
  fs::permissions(tmp, fs::perms(01777));
  for (const fs::path& place : {link, tmp / "link"}) {
    fs::create_symlink(made.file, place);
    REQUIRE(::lchown(place.c_str(), kMallory, kMallory) == 0);
    CHECK(of_site(place) == "owner " + place.string());
    as(kAlice, [&] { CHECK(strictly(place) == "owner " + place.string()); });
  }
  as(kAlice, [&] { CHECK(of_site(tmp / "link") == "owner " + (tmp / "link").string()); });  // left there for others
  CHECK_REFUSED(require_trusted_path(link, Above::Site, "others may"), Usage, "a symbolic link of user 4711");
  CHECK_REFUSED(require_trusted_path(link, Above::Site, "others may"), Usage, "sudo -u '#4711'");
}

TEST_CASE("a group may write where it is its user's own, or root's, and nobody is named beside it") {
  if (!is_root()) return;
  const Folders made;
  fs::permissions(made.below, fs::perms(0775));
  CHECK(strictly(made.file) == "");  // of group 0
  REQUIRE(::chown(made.below.c_str(), 0, kMallory) == 0);
  CHECK(strictly(made.file) == "writable " + made.below.string());
  CHECK(of_site(made.file) == "writable " + made.below.string());
  const auto as_alice = [&](const std::function<void()>& act) {
    REQUIRE(::setegid(kAlice) == 0);
    as(kAlice, act);
    REQUIRE(::setegid(0) == 0);
  };
  as_alice([&] { CHECK(strictly(made.file) == "writable " + made.below.string()); });
  as_alice([&] { CHECK(of_site(made.file) == ""); });
  REQUIRE(::chown(made.below.c_str(), kAlice, kAlice) == 0);
  as_alice([&] { CHECK(strictly(made.file) == ""); });
  // An access list: user 4711 may write. Linux, fs/posix_acl.c: version 2, then tag, permissions and id of each.
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{1, 7, ~0U}, {2, 7, kMallory}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}};
  } list;
  if (::setxattr(made.below.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    return left_out("no access lists here");
  as_alice([&] { CHECK(strictly(made.file) == "writable " + made.below.string()); });
}
