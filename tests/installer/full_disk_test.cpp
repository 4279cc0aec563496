// SPDX-License-Identifier: Apache-2.0
// A file system that is really too small: at any size the refusal comes before a byte is written; and should the room
// go while we write, the refusal is clean and the next run, with more of it, carries on. In a mount namespace of our
// own; where that is not allowed, nothing is tested and a line says so.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/installer/crash_site.hpp"

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

// 77 where we may not; the percentage at which something was wrong, and says what on stderr; 0.
int try_all_sizes(const Site& site, const MadeBundle& made, const DiskImage& after, std::uint64_t needed) {
  if (!enter_own_mounts()) return 77;
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

}  // namespace

TEST_CASE(
    "a disk that is too small is refused before a byte is written, and one that fills up leaves a clean refusal") {
  const Site site;
  const MadeBundle made = site.make(small_files());
  TestDisk disk;
  const Applied applied = site.apply(made, disk);
  const DiskImage after = comparable(read_image(site.prefix().folder()));
  fs::remove_all(site.prefix().folder());
  const pid_t child = ::fork();
  if (child == 0) {
    int exit = 3;
    try {
      exit = try_all_sizes(site, made, after, applied.needed_bytes);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(exit);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    MESSAGE("no mount namespace may be made here; nothing was tested");
  else
    CHECK(WEXITSTATUS(status) == 0);
}
