// SPDX-License-Identifier: Apache-2.0
// A file system that is really too small: at any size the refusal comes before a byte is written; and should the room
// go while we write, the refusal is clean and the next run, with more of it, carries on. And file systems that are put
// together in other ways. In a mount namespace of our own; where that is not allowed, nothing is tested and a line says
// so.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <functional>

#include "installer/doctor/doctor.hpp"
#include "installer/upkeep/gc.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/crash_site.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// Many small files: those are what takes more room on a disk than their bytes say.
TinyBundle small_files() {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 4000; ++i) files["demo/f" + std::to_string(i)] = std::to_string(i);
  TinyBundle tiny{.chunk_size = 65536, .installed_size = 400'000, .installed_files = 4020, .items = {}};
  tiny.items = {wheel_item({.files = files})};
  return tiny;
}

// Believes that there is room.
class OptimisticDisk final : public Disk {
 public:
  FreeSpace free_space(const fs::path&) const override { return {.bytes = 1ull << 40, .inodes = 1ull << 30}; }
};

bool enter_own_mounts() {
  const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
  if (::geteuid() == 0) {
    if (::unshare(CLONE_NEWNS) != 0) return false;
  } else {
    if (::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " + user + " 1";
    std::ofstream("/proc/self/gid_map") << "0 " + group + " 1";
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

bool set_size(const fs::path& where, std::uint64_t bytes, unsigned long flags = 0) {
  return ::mount("none", where.c_str(), "tmpfs", flags, ("mode=755,size=" + std::to_string(bytes)).c_str()) == 0;
}

// What is wrong, or nothing. Runs in a child, where doctest does not reach.
std::string fault_at(const Site& site, const MadeBundle& made, const DiskImage& after, std::uint64_t size) {
  const fs::path root = site.prefix().folder();
  if (!set_size(root, size)) return "a small disk cannot be made";
  const auto refusal_of = [&](Disk& disk) {
    try {
      site.apply(made, disk);
      return std::string();
    } catch (const bundle::Error& error) {
      return std::string(name_of(error.code())) + (error.facts().next.empty() ? " without a remedy" : "");
    }
  };
  Disk honest;
  if (refusal_of(honest) != "space") return "it was not refused";
  if (fs::exists(site.prefix().store()) || fs::exists(site.prefix().staging())) return "something was written";
  OptimisticDisk optimistic;
  const std::string refusal = refusal_of(optimistic);
  if (refusal != "" && refusal != "space") return "amid writing: " + refusal;
  if (refusal == "" ? !fs::exists(site.current()) : fs::exists(fs::symlink_status(site.current()))) return "current";
  if (!set_size(root, std::uint64_t{64} << 20, MS_REMOUNT)) return "the disk cannot be made larger";
  if (refusal_of(honest) != "") return "the next run fails";
  if (comparable(read_image(root)) != after) return "the next run's result differs";
  if (::umount2(root.c_str(), MNT_DETACH) != 0) return "the disk cannot be taken away";
  return refusal == "" ? "enough" : "";
}

// The percentage at which something was wrong, and says what on stderr; 0.
int try_all_sizes(const Site& site, const MadeBundle& made, const DiskImage& after, std::uint64_t needed) {
  fs::create_directories(site.prefix().folder());
  int full = 0;
  for (int percent = 5; percent <= 95; percent += 5) {
    const std::string fault = fault_at(site, made, after, needed * static_cast<std::uint64_t>(percent) / 100);
    full += fault == "";
    if (fault == "" || fault == "enough") continue;
    std::fprintf(stderr, "at %d %%: %s\n", percent, fault.c_str());
    return percent;
  }
  if (full < 10) return 1;  // the disk was never full amid writing
  if (!set_size(site.prefix().folder(), needed + (1 << 16))) return 2;
  Disk honest;
  site.apply(made, honest);  // what is said to be enough is enough
  return 0;
}

// `work` in a child, where mounts are our own; it returns 0, or what is wrong.
void check_in_own_mounts(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int exit = 3;
    try {
      exit = enter_own_mounts() ? work() : 77;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(exit);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    sealift::test::left_out("no such mount may be made here");
  else
    CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace

TEST_CASE(
    "a disk that is too small is refused before a byte is written, and one that fills up leaves a clean refusal") {
  const Site site;
  const MadeBundle made = site.make(small_files());
  TestDisk disk;
  const Applied applied = site.apply(made, disk);
  const DiskImage after = comparable(read_image(site.prefix().folder()));
  fs::remove_all(site.prefix().folder());
  check_in_own_mounts([&] { return try_all_sizes(site, made, after, applied.needed_bytes); });
}

TEST_CASE("a folder of the prefix on another file system is refused before a byte is written, a bind mount too") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  check_in_own_mounts([&] {
    const fs::path root = site.prefix().folder();
    int failed = 0;
    for (const char* name : {"store", "generations", "staging", "trust", "receipts"})
      for (const bool bind : {false, true}) {
        fs::create_directories(root / name);
        fs::create_directories(site.dir / "elsewhere");
        if (bind ? ::mount((site.dir / "elsewhere").c_str(), (root / name).c_str(), nullptr, MS_BIND, nullptr) != 0
                 : !set_size(root / name, 1 << 24))
          return 2;
        const bundle::Error error = refusal([&] { site.apply(made); });
        const bool right = error.code() == bundle::ErrorCode::Platform && mentions(error, "on another file system") &&
                           mentions(error, (root / name).string()) && mentions(error, "mount that file system at") &&
                           fs::is_empty(root / name);
        if (!right) std::fprintf(stderr, "%s: %s\n", name, error.what());
        failed += !right;
        if (::umount2((root / name).c_str(), MNT_DETACH) != 0) return 3;
        fs::remove_all(root);
      }
    // The prefix itself may be a mount, of either kind.
    fs::create_directories(root);
    if (::mount((site.dir / "elsewhere").c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0) return 4;
    site.apply(made);
    return failed + (fs::exists(site.current()) ? 0 : 5);
  });
}

TEST_CASE("a prefix that is a layer of an overlay, as an image has it, is whole, and the next version goes above it") {
  const Site site;
  const MadeBundle made = site.make(three_kinds()), more = site.make(three_kinds_and_more(), "more");
  check_in_own_mounts([&] {
    const fs::path root = site.prefix().folder(), layers = site.dir / "layers";
    fs::create_directories(layers);
    if (!set_size(layers, 1 << 26)) return 2;  // an overlay does not lie on every file system
    fs::create_directories(layers / "lower");
    fs::create_directories(root);
    if (::mount((layers / "lower").c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0) return 3;
    site.apply(made);
    if (::umount2(root.c_str(), MNT_DETACH) != 0) return 4;
    fs::create_directories(layers / "upper");
    fs::create_directories(layers / "work");
    const std::string how = "lowerdir=" + (layers / "lower").string() + ",upperdir=" + (layers / "upper").string() +
                            ",workdir=" + (layers / "work").string();
    if (::mount("overlay", root.c_str(), "overlay", 0, how.c_str()) != 0) return 77;
    Disk disk;
    bundle::Progress silent(nullptr);
    const auto healthy = [&] {
      const Checkup checkup = doctor({.prefix = site.prefix(), .repair = {}, .now = kNow}, disk, silent);
      for (const Deviation& finding : checkup.findings)
        std::fprintf(stderr, "%s: %s\n", finding.paths.front().c_str(), finding.got.c_str());
      return checkup.findings.empty() && checkup.generations != 0;
    };
    if (!healthy()) return 5;
    if (site.apply(made).action != InstallPlan::Action::Nothing) return 6;
    if (site.apply(more).generation != 2 || !healthy()) return 7;
    switch_to(site.prefix(), 1, disk);
    switch_to(site.prefix(), 2, disk);
    // Whether a folder of the layer below can be taken away depends on how the overlay is mounted.
    try {
      gc({.prefix = site.prefix(), .keep = 1}, disk);
    } catch (const bundle::Error& error) {
      if (!mentions(error, "change it where that layer is made")) return 8;
    }
    if (!healthy() || status_of(site.prefix()).current != 2) return 9;
    return 0;
  });
}
