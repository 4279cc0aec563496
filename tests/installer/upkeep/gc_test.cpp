// SPDX-License-Identifier: Apache-2.0
// Taking back room: what goes, what stays and why, who is asked, and what a stop at any moment leaves.
#include "installer/upkeep/gc.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation.hpp"
#include "installer/generations/generation_record.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/store/store.hpp"
#include "installer/upkeep/inventory.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/site.hpp"
#include "tests/installer/stopping_disk.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// Version `version`: a wheel that all versions have, and one file of its own.
TinyBundle version_of_it(std::uint64_t version) {
  TinyBundle tiny{.version = version};
  const std::string number = std::to_string(version);
  tiny.items = {wheel_item({}), file_item("files/own" + number, numbers_text(static_cast<unsigned>(version), 5000),
                                          "share/own" + number)};
  return tiny;
}

// A prefix with the generations 1 to `count`, the last one current.
struct AgedSite : Site {
  Disk disk;

  explicit AgedSite(unsigned count) {
    for (unsigned version = 1; version <= count; ++version)
      apply(make(version_of_it(version), "bundle" + std::to_string(version)));
  }
  std::vector<unsigned> generations() const { return generation_numbers(prefix()); }
  GcOptions keeping(unsigned keep, const fs::path& proc = "/proc") const {
    return {.prefix = prefix(), .keep = keep, .proc = proc};
  }
  Cleanup clean(const GcOptions& options) { return gc(options, disk); }
  Cleanup clean(unsigned keep) { return clean(keeping(keep)); }
  Cleanup plan(GcOptions options) {
    options.dry_run = true;
    return clean(options);
  }
};

std::uint64_t blocks_of(const fs::path& root) {
  std::map<ino_t, std::uint64_t> blocks;
  blocks[status_of_path(root).st_ino] = static_cast<std::uint64_t>(status_of_path(root).st_blocks);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root))
    blocks[status_of_path(entry.path()).st_ino] = static_cast<std::uint64_t>(status_of_path(entry.path()).st_blocks);
  std::uint64_t sum = 0;
  for (const auto& [inode, count] : blocks) sum += count * 512;
  return sum;
}

// Every generation that has its name is whole: its record can be read, its items are there, its files can be read.
void check_whole(const Site& site) {
  for (const unsigned number : generation_numbers(site.prefix())) {
    const fs::path root = site.prefix().generation(number);
    const GenerationRecord record = read_generation_record(root, number);
    for (const GenerationRecord::Part& part : record.entries)
      CHECK(fs::exists(site.prefix().store() / part.item / "record.json"));
    CHECK(read_file(root / "share" / ("own" + std::to_string(number))) == numbers_text(number, 5000));
    CHECK(read_file(root / "lib/python3.11/site-packages/demo/__init__.py") == "ANSWER = 42\n");
  }
}

// A /proc with one process in it that uses `path` in one way.
struct MadeProc {
  TempDir dir;
  fs::path process = dir / "4711";

  MadeProc() {
    write_file(process / "maps", "");
    write_file(process / "comm", "python3\n");
    write_file(process / "stat", "4711 (a b) c) S 1 4711 4711 0 -1 4194560 100\n");
    fs::create_directories(process / "fd");
    fs::create_symlink("/", process / "root");
    fs::create_symlink("/usr/bin/none", process / "exe");
    fs::create_symlink("/", process / "cwd");
  }
  void point(const char* link, const fs::path& target) {
    fs::remove(process / link);
    fs::create_symlink(target, process / link);
  }
};

}  // namespace

TEST_CASE("gc leaves the newest generations, removes the others and the items that only they had") {
  AgedSite site(4);
  const std::uint64_t before = blocks_of(site.prefix().folder());
  const auto untouched = snapshot(site.prefix().folder());
  const Cleanup planned = site.plan(site.keeping(2));
  CHECK(snapshot(site.prefix().folder()) == untouched);
  const Cleanup done = site.clean(2);
  CHECK(planned.generations == std::vector<unsigned>{1, 2});
  CHECK(done.generations == planned.generations);
  CHECK(done.items == planned.items);
  CHECK(done.items.size() == 2);
  CHECK(done.files == planned.files);
  CHECK(done.bytes == planned.bytes);
  CHECK(before - blocks_of(site.prefix().folder()) == done.bytes);
  CHECK(site.generations() == std::vector<unsigned>{3, 4});
  CHECK(!fs::exists(site.prefix().staging()));
  check_whole(site);
  CHECK(site.clean(2).bytes == 0);
}

TEST_CASE("after gc, switch goes back and forth without the medium, and the next number is a new one") {
  AgedSite site(3);
  site.clean(2);
  for (const char* medium : {"bundle1", "bundle2", "bundle3"}) fs::remove_all(site.dir / medium);
  CHECK(switch_to(site.prefix(), 2, site.disk).version == 2);
  CHECK(read_file(site.current() / "share/own2") == numbers_text(2, 5000));
  CHECK_REFUSED(switch_to(site.prefix(), 1, site.disk), Missing, "2, 3");
  site.clean(1);  // 2 is current, 3 the newest
  CHECK(switch_to(site.prefix(), 3, site.disk).version == 3);
  site.clean(1);
  CHECK(site.generations() == std::vector<unsigned>{3});
  CHECK(site.apply(site.make(version_of_it(4), "bundle4")).generation == 4);
}

TEST_CASE("what is current or pinned stays, however old it is, and what is unpinned goes") {
  AgedSite site(4);
  switch_to(site.prefix(), 1, site.disk);
  CHECK(pin_generation(site.prefix(), 2, site.disk));
  CHECK_FALSE(pin_generation(site.prefix(), 2, site.disk));
  CHECK_REFUSED(pin_generation(site.prefix(), 9, site.disk), Missing, "1, 2, 3, 4");
  CHECK(status_of(site.prefix()).generations[1].pinned);
  const Cleanup cleanup = site.clean(1);
  CHECK(cleanup.generations == std::vector<unsigned>{3});
  REQUIRE(cleanup.kept.size() == 3);
  CHECK(cleanup.kept[0].why == "current");
  CHECK(cleanup.kept[1].why == "pinned");
  CHECK(cleanup.kept[2].why == "the newest");
  check_whole(site);
  CHECK(unpin_generation(site.prefix(), 2, site.disk));
  CHECK_FALSE(unpin_generation(site.prefix(), 2, site.disk));
  CHECK(site.clean(1).generations == std::vector<unsigned>{2});
  check_whole(site);
}

TEST_CASE("gc needs at least one generation to keep, a prefix, and the lock") {
  AgedSite nobody(0);
  CHECK_REFUSED(nobody.clean(2), Missing, "no prefix");
  CHECK(!fs::exists(nobody.prefix().folder()));
  AgedSite site(1);
  CHECK_REFUSED(site.clean(0), Usage, "newest");
  const PrefixLock lock(site.prefix(), site.disk, "apply");
  CHECK_REFUSED(site.clean(1), Conflict, "sealift-install apply");
  CHECK_REFUSED(pin_generation(site.prefix(), 1, site.disk), Conflict, "sealift-install apply");
}

TEST_CASE("a folder that is no prefix is called none by every verb, never healthy, and nothing is written there") {
  const AgedSite nobody(0);
  Disk disk;
  bundle::Progress silent(nullptr);
  const Prefix prefix(nobody.dir / "somewhere");
  write_file(prefix.folder() / "notes.txt", "mine\n");
  for (const bool locked : {false, true}) {  // a run that was refused may have left its lock
    if (locked) write_file(prefix.lock(), "");
    const auto before = snapshot(prefix.folder());
    CHECK_REFUSED(status_of(prefix), Missing, "no prefix");
    CHECK_REFUSED(doctor({.prefix = prefix, .repair = {}, .now = kNow}, disk, silent), Missing, "no prefix");
    CHECK_REFUSED(gc({.prefix = prefix}, disk), Missing, "no prefix");
    CHECK_REFUSED(switch_to(prefix, 3, disk), Missing, "no prefix");
    CHECK_REFUSED(pin_generation(prefix, 3, disk), Missing, "no prefix");
    CHECK_REFUSED(unpin_generation(prefix, 3, disk), Missing, "no prefix");
    CHECK_REFUSED(take_inventory(prefix), Missing, "no prefix");
    CHECK(snapshot(prefix.folder()) == before);
  }
}

TEST_CASE("generations whose numbers nobody can count up from are nobody's") {
  const AgedSite site(1);
  fs::create_directory(site.prefix().generations() / "4294967295");
  fs::create_directory(site.prefix().generations() / "18446744073709551617");
  CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1});
}

TEST_CASE("a generation in which a process maps a file stays until that process has ended") {
  AgedSite site(3);
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const std::string file = site.prefix().generation(1) / "share/own1";
  const pid_t child = ::fork();
  if (child == 0) {
    const int opened = ::open(file.c_str(), O_RDONLY);
    void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, opened, 0);
    ::close(opened);
    [[maybe_unused]] const ssize_t said = ::write(ready[1], mapped == MAP_FAILED ? "n" : "y", 1);
    for (;;) ::pause();
  }
  char mapped = 0;
  REQUIRE(::read(ready[0], &mapped, 1) == 1);
  REQUIRE(mapped == 'y');
  const Cleanup cleanup = site.clean(1);
  CHECK(cleanup.generations == std::vector<unsigned>{2});
  REQUIRE(cleanup.kept.size() == 2);
  CHECK(cleanup.kept[0].why.find("in use by process " + std::to_string(child)) == 0);
  check_whole(site);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]), ::close(ready[1]);
  CHECK(site.clean(1).generations == std::vector<unsigned>{1});
}

TEST_CASE("a program, a working folder, an open file and a mapped file each keep a generation, seen from any root") {
  AgedSite site(3);
  MadeProc proc;
  const GcOptions options = site.keeping(1, proc.dir.path());
  const fs::path file = site.prefix().generation(1) / "share/own1";
  CHECK(site.plan(options).generations == std::vector<unsigned>{1, 2});
  SUBCASE("program") {
    proc.point("exe", file);
  }
  SUBCASE("removed program") {
    proc.point("exe", file.string() + "x (deleted)");
  }
  SUBCASE("working folder") {
    proc.point("cwd", file.parent_path().parent_path());
  }
  SUBCASE("open file") {
    fs::create_symlink(file, proc.process / "fd/3");
  }
  SUBCASE("mapped file") {
    write_file(
        proc.process / "maps",
        "7f0-7f1 r-xp 00000000 08:01 4711   [stack]\n7f0-7f1 r-xp 00000000 08:01 4711   " + file.string() + "\n");
  }
  SUBCASE("mounted under another name in a container") {
    const TempDir container;
    fs::create_symlink(site.prefix().generation(1), container / "env");
    proc.point("root", container.path());
    write_file(proc.process / "maps", "7f0-7f1 r-xp 00000000 08:01 4711   /env/share/own1\n");
    const Cleanup cleanup = site.plan(options);
    CHECK(cleanup.generations == std::vector<unsigned>{2});
    return;
  }
  const Cleanup cleanup = site.plan(options);
  CHECK(cleanup.generations == std::vector<unsigned>{2});
  CHECK(cleanup.kept[0].why == "in use by process 4711 (python3)");
}

TEST_CASE("processes that may not be examined are counted and said, threads of the kernel are not") {
  AgedSite site(2);
  MadeProc proc;
  const GcOptions options = site.keeping(1, proc.dir.path());
  CHECK(site.plan(options).warnings.size() == 1);  // there is no process 1: others are invisible
  for (const auto& [pid, flags] : {std::pair("12", "4194560"), std::pair("13", "2129984")}) {  // 0x208040: the kernel's
    write_file(proc.dir / pid / "stat", std::string(pid) + " (x) S 1 1 1 0 -1 " + flags + " 0\n");
    write_file(proc.dir / pid / "exe", "no link, so that reading it fails");
  }
  const std::vector<std::string> warnings = site.plan(options).warnings;
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].starts_with("1 processes"));
}

TEST_CASE("without a list of processes nothing is removed") {
  AgedSite site(2);
  const TempDir empty;
  for (const fs::path& proc : {empty.path(), empty / "none"})
    CHECK_REFUSED(site.clean(site.keeping(1, proc)), CannotCheck, "mount /proc");
  CHECK(site.generations() == std::vector<unsigned>{1, 2});
}

TEST_CASE("a process that starts between the plan and the removal keeps its generation, with its items") {
  AgedSite site(3);
  MadeProc proc;
  // Begins to use generation 1 at the moment at which it is put aside.
  class LateUser final : public Disk {
   public:
    explicit LateUser(MadeProc& proc) : proc_(proc) {}
    void rename(const fs::path& from, const fs::path& to) override {
      Disk::rename(from, to);
      if (to.filename() == "0001" && to.string().find("staging") != std::string::npos) proc_.point("cwd", to);
    }

   private:
    MadeProc& proc_;
  } disk(proc);
  const Cleanup cleanup = gc(site.keeping(1, proc.dir.path()), disk);
  CHECK(cleanup.generations == std::vector<unsigned>{2});
  CHECK(cleanup.items.size() == 1);
  CHECK(site.generations() == std::vector<unsigned>{1, 3});
  check_whole(site);
}

TEST_CASE("stopped at any change, gc leaves whole generations only, and the next one finishes its work") {
  int stops = 0;
  for (int k = 0; k < 200; ++k) {
    AgedSite site(3);
    fs::path current = fs::read_symlink(site.current());
    StoppingDisk disk(k);
    bool stopped = false;
    try {
      gc(site.keeping(1), disk);
    } catch (const StoppingDisk::Stop&) {
      stopped = true;
      ++stops;
    }
    CHECK(fs::read_symlink(site.current()) == current);
    check_whole(site);
    site.clean(1);
    CHECK(site.generations() == std::vector<unsigned>{3});
    CHECK(std::distance(fs::directory_iterator(site.prefix().store()), fs::directory_iterator()) == 2);
    CHECK(!fs::exists(site.prefix().staging()));
    check_whole(site);
    if (!stopped) break;
  }
  CHECK(stops > 10);
  CHECK(stops < 200);
}

TEST_CASE("a generation that stays with a damaged record keeps the whole store, and gc says why") {
  AgedSite site(3);
  fs::permissions(site.prefix().generation(3) / "generation.json", fs::perms::owner_all);
  write_file(site.prefix().generation(3) / "generation.json", "{");
  const Cleanup cleanup = site.clean(1);
  CHECK(cleanup.generations == std::vector<unsigned>{1, 2});
  CHECK(cleanup.items.empty());
  REQUIRE(!cleanup.warnings.empty());
  CHECK(cleanup.warnings[0].find("generation 3 stays") == 0);
  CHECK(std::distance(fs::directory_iterator(site.prefix().store()), fs::directory_iterator()) == 4);
}

TEST_CASE("gc leaves alone what an unfinished apply has verified, and names that nobody gave") {
  AgedSite site(1);
  write_file(site.prefix().staged_items() / "waiting" / "record.json", "{}");
  write_file(site.prefix().store() / "notes.txt", "an operator's");
  const Cleanup cleanup = site.clean(1);
  REQUIRE(cleanup.warnings.size() == 1);
  CHECK(cleanup.warnings[0].find("unfinished apply") != std::string::npos);
  CHECK(fs::exists(site.prefix().staged_items() / "waiting/record.json"));
  CHECK(fs::exists(site.prefix().store() / "notes.txt"));
}
