// SPDX-License-Identifier: Apache-2.0
// Other users of the machine: what they own or can write is not installed into, their links lead nowhere, and their
// code is not run.
#include "installer/prefix/prefix_owner.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "installer/disk/open_beneath.hpp"
#include "installer/doctor/doctor.hpp"
#include "installer/generations/pins.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/prefix/trust_store.hpp"
#include "installer/upkeep/gc.hpp"
#include "installer/upkeep/set_repository.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/site.hpp"
#include "tests/support/other_user.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

struct Installed : Site {
  MadeBundle first = make(three_kinds(), "first"), second = make(three_kinds_and_more(), "second");
  fs::path root = dir / "root.json";

  Installed() {
    Site::apply(first);
    write_file(root, write_envelope(bundle::open(first.folder).seal.roots.at(0)));
  }

  // Every verb that writes, each refused with this code and these words.
  void check_all_refused(bundle::ErrorCode code, const std::string& words) const {
    const auto before = installed(prefix().folder());
    Disk disk;
    bundle::Progress silent(nullptr);
    const std::pair<const char*, std::function<void()>> verbs[] = {
        {"apply", [&] { Site::apply(second); }},
        {"switch", [&] { switch_to(prefix(), 1, disk); }},
        {"gc", [&] { gc({.prefix = prefix()}, disk); }},
        {"pin", [&] { pin_generation(prefix(), 1, disk); }},
        {"unpin", [&] { unpin_generation(prefix(), 1, disk); }},
        {"trust add", [&] { pin_root(prefix(), disk, {root}, *first.trusted.state.pinned); }},
        {"trust update", [&] { update_root(prefix(), disk, {root}); }},
        {"site", [&] { set_repository(prefix(), "https://repository.example", {}, disk); }},
        {"doctor --repair", [&] { doctor({.prefix = prefix(), .repair = first.folder, .now = kNow}, disk, silent); }},
    };
    for (const auto& verb : verbs) {
      CAPTURE(std::string(verb.first));
      const bundle::Error error = refusal(verb.second);
      INFO(error.what());
      CHECK(error.code() == code);
      CHECK(mentions(error, words));
      CHECK_FALSE(error.facts().next.empty());
    }
    CHECK(installed(prefix().folder()) == before);
  }
};

}  // namespace

TEST_CASE("a prefix below a folder in which others may rename is refused by every verb that writes") {
  struct Deep : Installed {
    fs::path above = dir / "above";
  };
  const Deep site;
  fs::create_directories(site.above / "below");
  const Prefix inner(site.above / "below/prefix");
  const auto judge = [&] { require_own_prefix(inner); };
  CHECK_NOTHROW(judge());
  fs::permissions(site.above, fs::perms(0777));
  CHECK_REFUSED(judge(), Usage, "in the place of this prefix");
  fs::permissions(site.above, fs::perms(0775));  // as a umask of 002 makes it
  CHECK_NOTHROW(judge());
  fs::permissions(site.above, fs::perms(01777));  // as /tmp is
  CHECK_NOTHROW(judge());
  fs::permissions(site.above, fs::perms(0755));
  fs::create_directory_symlink(site.above / "below", site.dir / "link");
  fs::permissions(site.above, fs::perms(0777));
  fs::create_directories(inner.folder());
  CHECK_REFUSED(require_own_prefix(Prefix(site.dir / "link/prefix")), Usage, site.above.string());
  fs::permissions(site.above, fs::perms(0755));
  CHECK_NOTHROW(require_own_prefix(Prefix(site.dir / "link/prefix")));
  if (!is_root()) return;
  const fs::perms was = fs::status(site.dir.path()).permissions();
  fs::permissions(site.dir.path(), fs::perms(0755));
  fs::permissions(site.above, fs::perms(02775));
  for (const uid_t owner : {0, 4711}) {  // a project's folder: no place for root's prefix, but for a user's
    REQUIRE(::chown(site.above.c_str(), owner, 4711) == 0);
    CHECK_REFUSED(judge(), Usage, owner == 0 ? "in the place of this prefix" : "user 4711");
    REQUIRE(::seteuid(1234) == 0);
    CHECK_NOTHROW(judge());
    REQUIRE(::seteuid(0) == 0);
  }
  fs::permissions(site.dir.path(), fs::perms(0777));
  site.check_all_refused(bundle::ErrorCode::Usage, "mode 0777");
  fs::permissions(site.dir.path(), was);
}

TEST_CASE("a prefix whose folders others may write is refused by every verb that writes, with what to do") {
  const Installed site;
  for (const fs::path& path : {site.prefix().folder(), site.prefix().store(), site.prefix().generations(),
                               site.prefix().modulefiles(), site.prefix().trust()})
    for (const fs::perms mode : {fs::perms(0777), fs::perms(01777), fs::perms(0775), fs::perms(02775)}) {
      CAPTURE(path.string());
      const fs::perms was = fs::status(path).permissions();
      fs::permissions(path, mode);
      site.check_all_refused(bundle::ErrorCode::Usage, "chmod go-w");
      fs::permissions(path, was);
    }
  fs::permissions(site.prefix().trust() / "state.a", fs::perms(0666));
  site.check_all_refused(bundle::ErrorCode::Usage, "chmod go-w");
  fs::permissions(site.prefix().trust() / "state.a", fs::perms(0644));
  CHECK(site.apply(site.second).generation == 2);
}

TEST_CASE("root does not install into, and runs nothing of, a prefix or a part of it that belongs to somebody else") {
  if (!is_root()) return;
  const Installed site;
  for (const fs::path& path : {site.prefix().folder(), site.prefix().store(), site.prefix().generations(),
                               site.prefix().trust(), site.prefix().trust() / "state.b", site.prefix().lock(),
                               site.prefix().stamps(), site.prefix().receipts(), site.prefix().modulefiles()}) {
    CAPTURE(path.string());
    REQUIRE(::lchown(path.c_str(), 4711, 4711) == 0);
    site.check_all_refused(bundle::ErrorCode::Usage, path == site.prefix().store() ? "4711" : "sudo -u '#4711'");
    REQUIRE(::lchown(path.c_str(), 0, 0) == 0);
  }
  CHECK(is_own_prefix(site.prefix()));
  REQUIRE(::lchown(site.prefix().store().c_str(), 4711, 4711) == 0);
  CHECK_FALSE(is_own_prefix(site.prefix()));
  bundle::Progress silent(nullptr);
  Disk disk;
  const Checkup found = doctor({.prefix = site.prefix(), .repair = {}, .now = kNow}, disk, silent);  // reads only
  CHECK_FALSE(found.libraries);
}

TEST_CASE("a user installs into a folder that root made for them") {
  if (!is_root()) return;
  const TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  const Prefix prefix(dir / "prefix");
  fs::create_directory(prefix.folder());
  for (const char* name : {"store", "generations", "trust"}) {
    fs::create_directory(prefix.folder() / name);
    REQUIRE(::chown((prefix.folder() / name).c_str(), 4711, 4711) == 0);
  }
  REQUIRE(::seteuid(4711) == 0);
  CHECK_NOTHROW(require_own_prefix(prefix));
  REQUIRE(::seteuid(0) == 0);
  CHECK_REFUSED(require_own_prefix(prefix), Usage, "user 4711");
}

TEST_CASE("a link in the place of one of the prefix's folders empties and fills no other folder") {
  for (const char* name : {"staging", "store", "generations", "trust", "failed", "receipts", "pins", "venvs", "site",
                           "modulefiles", "kernels"}) {
    CAPTURE(std::string(name));
    const Installed site;
    const fs::path foreign = site.dir / "foreign", link = site.prefix().folder() / name;
    fs::create_directories(foreign / "folder");
    write_file(foreign / "folder/file", "precious");
    if (std::string(name) == "trust") fs::copy(site.prefix().trust(), foreign, fs::copy_options::recursive);
    const auto before = snapshot(foreign);
    fs::remove_all(link);
    fs::create_directory_symlink(foreign, link);
    Disk disk;
    CHECK_THROWS_AS(switch_to(site.prefix(), 1, disk), bundle::Error);
    CHECK_THROWS_AS(site.apply(site.second), bundle::Error);
    CHECK(snapshot(foreign) == before);
  }
}

TEST_CASE("below an anchor no operation follows a link, and without one links are the caller's business") {
  const TempDir dir;
  const fs::path prefix = dir / "prefix", foreign = dir / "foreign";
  fs::create_directories(prefix / "real/inner");
  fs::create_directories(foreign / "inner");
  write_file(foreign / "inner/file", "precious");
  write_file(prefix / "real/file", "own");
  fs::create_directory_symlink(foreign, prefix / "link");
  fs::create_symlink(foreign / "inner/file", prefix / "file");
  Disk disk;
  const auto before = disk.anchor(prefix);
  CHECK(before == nullptr);
  CHECK_REFUSED(disk.make_folder(prefix / "link/new"), Conflict, "nothing was followed");
  CHECK_REFUSED(disk.make_folder(prefix / "link"), Conflict, "");
  CHECK_REFUSED(disk.make_folder(prefix / "link/inner/deep"), Conflict, "");
  CHECK_REFUSED(disk.create(prefix / "link/new", 0600), Conflict, "");
  CHECK_REFUSED(disk.create(prefix / "file", 0600), Io, "");
  CHECK_REFUSED(disk.remove_tree(prefix / "link/inner"), Conflict, "");
  CHECK_REFUSED(disk.rename(prefix / "link/inner", prefix / "taken"), Conflict, "");
  CHECK_REFUSED(disk.rename(prefix / "real/file", prefix / "link/file"), Conflict, "");
  CHECK_REFUSED(disk.make_symlink("x", prefix / "link/x"), Conflict, "");
  CHECK_REFUSED(disk.open_folder(prefix / "link"), Conflict, "");
  CHECK_REFUSED(disk.sync_folder(prefix / "link/inner"), Conflict, "");
  CHECK(read_file(foreign / "inner/file") == "precious");
  disk.remove_tree(prefix / "link");  // the link itself goes, and nothing behind it
  CHECK(!fs::is_symlink(prefix / "link"));
  CHECK(read_file(foreign / "inner/file") == "precious");
  fs::create_directory_symlink(foreign, prefix / "real/inner/link");
  disk.remove_tree(prefix / "real/");
  CHECK(!fs::exists(prefix / "real"));
  CHECK(read_file(foreign / "inner/file") == "precious");
  disk.make_folders(prefix / "a/b/c");
  disk.write_new(prefix / "a/b/c/file", "text", 0444);
  CHECK(read_file(prefix / "a/b/c/file") == "text");
  disk.anchor(nullptr);
  fs::create_directory_symlink(foreign, prefix / "link");
  disk.make_folder(prefix / "link/new");
  CHECK(fs::is_directory(foreign / "new"));
}

TEST_CASE("an anchored prefix that is renamed and replaced by a link goes on being the one that was opened") {
  const TempDir dir;
  const fs::path prefix = dir / "prefix", foreign = dir / "foreign";
  fs::create_directories(prefix / "staging");
  fs::create_directories(foreign / "staging/precious");
  Disk disk;
  disk.anchor(prefix);
  fs::rename(prefix, dir / "moved");
  fs::create_directory_symlink(foreign, prefix);
  disk.remove_tree(prefix / "staging");
  CHECK(fs::exists(foreign / "staging/precious"));
  CHECK(!fs::exists(dir / "moved/staging"));
}

TEST_CASE("opening beneath a folder leads to the same with and without openat2, and never out of it") {
  const TempDir dir;
  fs::create_directories(dir / "in/a/b");
  fs::create_directories(dir / "out");
  write_file(dir / "out/secret", "secret");
  write_file(dir / "in/a/b/file", "text");
  fs::create_directory_symlink("b", dir / "in/a/inside");
  fs::create_directory_symlink(dir / "out", dir / "in/a/outside");
  fs::create_symlink(dir / "out/secret", dir / "in/a/secret");
  const bundle::Descriptor in(::open((dir / "in").c_str(), O_PATH | O_DIRECTORY));
  for (const Resolve how : {Resolve::AsTheKernelCan, Resolve::NameByName}) {
    const auto opens = [&](const char* path) {
      return static_cast<bool>(open_beneath(in.get(), path, O_RDONLY | O_CLOEXEC, how));
    };
    CHECK(opens("a"));
    CHECK(opens("a/b"));
    CHECK(opens("a/b/file"));
    for (const char* path : {"a/inside", "a/inside/file", "a/outside", "a/outside/secret", "a/secret", "../out",
                             "a/../../out/secret", "/etc/passwd", "a/b/none", "a/b/file/x", ""}) {
      CAPTURE(std::string(path));
      CHECK_FALSE(opens(path));
    }
  }
}

TEST_CASE("a file system without fs-verity is nothing to fail at, and asked once") {
  const TempDir dir;
  write_file(dir / "file", "text");
  Disk disk;
  disk.protect(dir / "file");
  CHECK_FALSE(disk.protect(dir / "there is none"));
  CHECK(read_file(dir / "file") == "text");
}

TEST_CASE("a bundle that is refused needs no lock to be refused, and looking at it keeps nobody out") {
  const Installed site;
  const MadeBundle stranger = make_bundle(site.dir / "stranger", three_kinds_and_more());
  MadeBundle quiet = stranger;
  quiet.trusted = {};
  Disk disk;
  const PrefixLock lock(site.prefix(), disk, "apply");
  CHECK_REFUSED(site.apply(quiet), Signature, "not those of the owner");
  CHECK_REFUSED(site.apply(site.second), Conflict, "sealift-install apply");
}

TEST_CASE("a bundle of another name or channel becomes current only when that is asked for") {
  const Installed site;
  TinyBundle tiny = three_kinds_and_more();
  tiny.version = 9;
  SUBCASE("name") {
    tiny.name = "other";
  }
  SUBCASE("channel") {
    tiny.channel = "dev";
  }
  const MadeBundle made = site.make(tiny, "other");
  const auto before = installed(site.prefix().folder());
  CHECK_REFUSED(site.apply(made), Conflict, "--allow-other-name");
  CHECK_REFUSED(site.apply(made, true), Conflict, "--allow-other-name");
  CHECK(installed(site.prefix().folder()) == before);
  ApplyOptions asked = site.options(made);
  asked.allow_other_name = true;
  CHECK(site.apply(asked).generation == 2);
  CHECK_REFUSED(site.apply(site.first), Conflict, "nothing was written");  // the way back is asked for as well
  Disk disk;
  CHECK(switch_to(site.prefix(), 1, disk).name == "tiny");
  CHECK(site.apply(site.second).generation == 3);
}

TEST_CASE("a bundle without an interpreter takes no environment's place unless that is asked for") {
  const Installed site;
  const fs::path python = site.prefix().current() / "bin/python3";
  fs::create_directories(python.parent_path());
  write_file(python, "an interpreter");
  TinyBundle tiny{.version = 9, .items = {file_item("files/data/rows", "rows", "data/rows")}};
  const MadeBundle made = site.make(tiny, "models");
  const auto before = installed(site.prefix().folder());
  CHECK_REFUSED(site.apply(made), Conflict, "brings no interpreter");
  CHECK_REFUSED(site.apply(made), Conflict, "--prefix " + (site.prefix().folder().parent_path() / "tiny").string());
  CHECK(installed(site.prefix().folder()) == before);
  ApplyOptions asked = site.options(made);
  asked.allow_other_name = true;
  CHECK(site.apply(asked).generation == 2);
}

TEST_CASE("a second bundle under an accepted version ends with 15 also as a downgrade below a newer one") {
  const Site site;
  const auto version = [](std::uint64_t number, const char* text) {
    return TinyBundle{.version = number, .items = {file_item("files/a", text, "share/a")}};
  };
  site.apply(site.make(version(4, "four"), "four"));
  site.apply(site.make(version(5, "five"), "five"));
  const MadeBundle second = site.make(version(4, "not four"), "second");
  Disk disk;
  CHECK_REFUSED(site.apply(second, disk, false, true), Equivocation, "why there are two");
  CHECK(read_file(site.current() / "share/a") == "five");
}

TEST_CASE("a prefix behind a chain of links through another user's folder is refused by every verb that writes") {
  if (!is_root()) return;
  const Installed site;
  const fs::perms was = fs::status(site.dir.path()).permissions();
  fs::permissions(site.dir.path(), fs::perms(0755));
  const fs::path home = site.dir / "mallory", real = site.dir / "prefix", moved = site.dir / "moved";
  fs::rename(real, moved);
  fs::create_directory(home);
  fs::create_directory_symlink(moved, home / "second");
  fs::create_directory_symlink(home / "second", real);  // root's link to the user's link to root's folder
  CHECK(site.apply(site.second).generation == 2);       // while all of it is root's
  give_away(home);
  site.check_all_refused(bundle::ErrorCode::Usage, home.string());
  fs::remove(real);
  fs::create_directory_symlink(moved, real);
  REQUIRE(::lchown(real.c_str(), 4711, 4711) == 0);  // in a folder of root's, but theirs to have made
  site.check_all_refused(bundle::ErrorCode::Usage, "user 4711");
  fs::remove(real);
  fs::rename(moved, real);
  fs::permissions(site.dir.path(), was);
}
