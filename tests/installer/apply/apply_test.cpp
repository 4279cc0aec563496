// SPDX-License-Identifier: Apache-2.0
// Whole installations that succeed: what lies where, what is shared, what is left alone.
#include "installer/apply/apply.hpp"

#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation.hpp"
#include "installer/prefix/prefix_lock.hpp"
#include "installer/upkeep/switch.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::GlibcVersion;

TEST_CASE("apply installs wheels, trees and files, and current points at the generation") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  const Applied applied = site.apply(made);
  CHECK(applied.action == InstallPlan::Action::Install);
  CHECK(applied.generation == 1);
  CHECK(applied.unpacked.size() == 4);
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
  CHECK(read_file(site.site_packages() / "demo/__init__.py") == "ANSWER = 42\n");
  CHECK(read_file(site.site_packages() / "demo-1.0.dist-info/INSTALLER") == "sealift\n");
  CHECK(read_file(site.current() / "share/notes.txt") == "notes\n");
  CHECK(read_file(site.current() / "lib/data.txt") == "data\n");
  CHECK(fs::read_symlink(site.current() / "bin/alias") == "tool");
  CHECK(!fs::exists(site.prefix().staging()));
  const GenerationRecord record = read_generation_record(site.prefix().generation(1), 1);
  CHECK(record.identity == applied.identity);
  CHECK(record.signers == std::vector{site.key.public_key().id()});
  CHECK(record.root == bundle::RootName{.version = 1, .fingerprint = *made.trusted.state.pinned});
  CHECK(record.audit.wheels == 1);
  CHECK(record.audit.record_rows == 7);  // module, METADATA, WHEEL, entry_points.txt, INSTALLER, RECORD and the program
  CHECK(record.entries.size() == 4);
}

TEST_CASE("where a wheel's RECORD is wrong about a file, the RECORD that is installed is right") {
  const Site site;
  const std::string library(5000, 'x'), wrong = "sha256=" + std::string(43, 'A');
  TinyBundle tiny;
  tiny.items = {wheel_item({.files = {{"demo/lib.so", library}, {"demo/__init__.py", "y"}},
                            .record_digests = {{"demo/lib.so", wrong}},
                            .record_sizes = {{"demo/lib.so", "4999"}}})};
  const MadeBundle made = site.make(tiny);
  site.apply(made);
  CHECK(read_file(site.site_packages() / "demo/lib.so") == library);
  const std::string record = read_file(site.site_packages() / "demo-1.0.dist-info/RECORD");
  const std::string right =
      "demo/lib.so,sha256=" +
      bundle::to_base64(bundle::sha256(bundle::as_bytes(library)).bytes, bundle::Base64::UrlNoPad) + ",5000\n";
  CHECK_MESSAGE(record.find(right) != std::string::npos, record);
  CHECK(record.find(wrong) == std::string::npos);
  ApplyOptions again = site.options(made);
  again.verify_store = true;
  CHECK(site.apply(again).action == InstallPlan::Action::Nothing);
}

TEST_CASE("names that differ in case alone, composed letters and the longest names are installed and found whole") {
  const Site site;
  const std::string longest(255, 'n'), module = std::string(252, 'm') + ".py";
  TinyBundle tiny;
  tiny.items = {
      wheel_item(
          {.files = {{"demo/A.py", "UPPER = 1\n"}, {"demo/a.py", "LOWER = 1\n"}, {"demo/" + module, "M = 1\n"}}}),
      tree_item("trees/names.tar", {{tar_file("share/" + longest + "/" + longest), "longest\n"},
                                    {tar_file("share/caf\u00e9"), "composed\n"},
                                    {tar_link("share/link", longest + "/" + longest), ""}})};
  site.apply(site.make(tiny));
  CHECK(read_file(site.site_packages() / "demo/A.py") == "UPPER = 1\n");
  CHECK(read_file(site.site_packages() / "demo/a.py") == "LOWER = 1\n");
  CHECK(read_file(site.site_packages() / "demo" / module) == "M = 1\n");
  CHECK(read_file(site.current() / "share/link") == "longest\n");
  CHECK(read_file(site.current() / "share/caf\u00e9") == "composed\n");
  Disk disk;
  bundle::Progress silent(nullptr);
  CHECK(doctor({.prefix = site.prefix(), .repair = {}, .now = kNow}, disk, silent).findings.empty());
}

TEST_CASE("what is installed is read-only, and modes do not depend on the umask") {
  const Site site;
  const mode_t before = ::umask(077);
  site.apply(site.make(three_kinds()));
  ::umask(before);
  CHECK((status_of_path(site.current() / "bin/program").st_mode & 07777) == 0555);
  CHECK((status_of_path(site.current() / "bin/tool").st_mode & 07777) == 0555);
  CHECK((status_of_path(site.current() / "bin/demo-run").st_mode & 07777) == 0555);
  CHECK((status_of_path(site.current() / "share/notes.txt").st_mode & 07777) == 0444);
  CHECK((status_of_path(site.site_packages() / "demo").st_mode & 07777) == 0755);
  CHECK((status_of_path(site.prefix().generation(1)).st_mode & 07777) == 0755);
}

TEST_CASE("a second apply of the same bundle writes nothing and says so") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  site.apply(made);
  const auto before = installed(site.prefix().folder());
  const Applied again = site.apply(made);
  CHECK(again.action == InstallPlan::Action::Nothing);
  CHECK(again.generation == 1);
  CHECK(installed(site.prefix().folder()) == before);
}

TEST_CASE("a second bundle reuses what the store has, by hard links") {
  const Site site;
  site.apply(site.make(three_kinds()));
  const Applied applied = site.apply(site.make(three_kinds_and_more(), "bundle2"));
  CHECK(applied.generation == 2);
  CHECK(applied.reused.size() == 4);
  CHECK(applied.unpacked == std::vector<std::string>{"wheels/more-1.0-py3-none-any.whl"});
  CHECK(fs::read_symlink(site.current()) == "generations/0002");
  const std::string file = "lib/python3.11/site-packages/demo/__init__.py";
  const struct stat first = status_of_path(site.prefix().generation(1) / file);
  const struct stat second = status_of_path(site.prefix().generation(2) / file);
  CHECK(first.st_ino == second.st_ino);
  CHECK(second.st_nlink == 3);  // the store and two generations
  CHECK(fs::exists(site.site_packages() / "more/__init__.py"));
  CHECK(!fs::exists(site.prefix().generation(1) / "lib/python3.11/site-packages/more"));
}

TEST_CASE("applying the bundle of an older generation switches back to it without unpacking") {
  const Site site;
  Disk disk;
  const MadeBundle first = site.make(three_kinds());
  site.apply(first);
  site.apply(site.make(three_kinds_and_more(), "bundle2"));
  const Applied back = site.apply(first, disk, false, true);
  CHECK(back.action == InstallPlan::Action::SwitchTo);
  CHECK(back.generation == 1);
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
  CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1, 2});
}

TEST_CASE("without hard links a generation is made of copies") {
  const Site site;
  LinklessDisk disk;
  const Applied applied = site.apply(site.make(three_kinds()), disk);
  CHECK(applied.record->audit.shared == 0);
  CHECK(read_file(site.site_packages() / "demo/__init__.py") == "ANSWER = 42\n");
  CHECK((status_of_path(site.current() / "bin/program").st_mode & 07777) == 0555);
  CHECK(status_of_path(site.current() / "bin/program").st_nlink == 1);
}

TEST_CASE("a dry run plans the same and writes nothing, not even the prefix") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  const Applied planned = site.apply(made, true);
  CHECK(!fs::exists(site.prefix().folder()));
  const Applied done = site.apply(made);
  CHECK(planned.unpacked == done.unpacked);
  CHECK(planned.needed_bytes == done.needed_bytes);
  CHECK(planned.needed_inodes == done.needed_inodes);
  CHECK(planned.generation == done.generation);
}

TEST_CASE("what a crash left in staging is swept, and what reached the store is not unpacked again") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  site.apply(made);
  fs::remove(site.current());
  fs::remove_all(site.prefix().generations());
  write_file(site.prefix().staging() / "4711/half/file", "half");
  const auto store = installed(site.prefix().store());
  const Applied again = site.apply(made);
  CHECK(again.unpacked.empty());
  CHECK(again.reused.size() == 4);
  CHECK(!fs::exists(site.prefix().staging()));
  for (const auto& [path, facts] : installed(site.prefix().store())) CHECK(store.at(path) == facts);
  CHECK(read_file(site.site_packages() / "demo/__init__.py") == "ANSWER = 42\n");
}

TEST_CASE(
    "a bundle refused half-way touches nothing but staging, and the next try does not unpack again what was good") {
  const Site site;
  TinyBundle tiny = three_kinds();
  const MadeBundle made = site.make(tiny);
  const bundle::Entry* wheel = nullptr;
  for (const bundle::Entry& entry : made.manifest.entries)
    if (entry.kind == bundle::EntryKind::Wheel) wheel = &entry;
  REQUIRE(wheel != nullptr);
  const std::string good = read_file(made.volume(0));
  std::string bad = good;
  bad[wheel->offset + wheel->stored_size - 1] ^= 1;
  write_file(made.volume(0), bad);
  CHECK_REFUSED(site.apply(made), Digest, "vol001");
  CHECK(!fs::exists(site.prefix().store()));
  CHECK(!fs::exists(site.prefix().generations()));
  std::map<std::string, ino_t> waiting;
  for (const fs::directory_entry& item : fs::directory_iterator(site.prefix().staged_items()))
    waiting[item.path().filename()] = status_of_path(item.path() / "record.json").st_ino;
  REQUIRE(!waiting.empty());
  write_file(made.volume(0), good);
  CHECK(site.apply(made).generation == 1);
  for (const auto& [name, inode] : waiting)
    CHECK(status_of_path(site.prefix().store() / name / "record.json").st_ino == inode);
  CHECK(!fs::exists(site.prefix().staging()));
}

TEST_CASE("the same bytes as a file and as a program are two items with two modes") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {file_item("files/a", "#!/bin/sh\n", "share/a"), file_item("files/b", "#!/bin/sh\n", "bin/b", true),
                file_item("files/c", "#!/bin/sh\n", "share/c")};
  const Applied applied = site.apply(site.make(tiny));
  CHECK(applied.unpacked.size() == 2);
  CHECK((status_of_path(site.current() / "share/a").st_mode & 07777) == 0444);
  CHECK((status_of_path(site.current() / "bin/b").st_mode & 07777) == 0555);
  CHECK(status_of_path(site.current() / "share/a").st_ino == status_of_path(site.current() / "share/c").st_ino);
}

TEST_CASE("an entry without a placement travels in the bundle but is not installed") {
  const Site site;
  MadeBundle made = site.make(three_kinds());
  TinyBundle tiny = three_kinds();
  std::erase_if(made.manifest.environment.placements, [](const auto& p) { return p.entry.text() == "files/notes"; });
  reseal(made, {one_key_root(site.key)}, {&site.key});
  CHECK(site.apply(made).unpacked.size() == 3);
  CHECK(!fs::exists(site.current() / "share/notes.txt"));
}

TEST_CASE("switch goes back and forth, and names what is there when asked for another") {
  const Site site;
  Disk disk;
  site.apply(site.make(three_kinds()));
  site.apply(site.make(three_kinds_and_more(), "bundle2"));
  CHECK(switch_to(site.prefix(), 1, disk).version == 1);
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
  CHECK(switch_to(site.prefix(), 2, disk).version == 2);
  CHECK(fs::read_symlink(site.current()) == "generations/0002");
  CHECK_REFUSED(switch_to(site.prefix(), 7, disk), Missing, "1, 2");
  const Status status = status_of(site.prefix());
  CHECK(status.current == 2);
  REQUIRE(status.generations.size() == 2);
  CHECK(status.generations[0].record->name == "tiny");
}

TEST_CASE("status lists a generation whose record is damaged with the reason") {
  const Site site;
  site.apply(site.make(three_kinds()));
  fs::permissions(site.prefix().generation(1) / "generation.json", fs::perms::owner_all);
  write_file(site.prefix().generation(1) / "generation.json", "{");
  const Status status = status_of(site.prefix());
  REQUIRE(status.generations.size() == 1);
  CHECK(!status.generations[0].record);
  CHECK(status.generations[0].fault.find("parse") != std::string::npos);
  CHECK(site.apply(site.make(three_kinds_and_more(), "bundle2")).generation == 2);  // and does not stand in the way
}

TEST_CASE("while somebody holds the lock, apply and switch are refused and name the holder") {
  const Site site;
  Disk disk;
  const MadeBundle made = site.make(three_kinds());
  site.apply(made);
  const PrefixLock lock(site.prefix(), disk, "apply");
  CHECK_REFUSED(site.apply(made), Conflict, "process " + std::to_string(::getpid()));
  CHECK_REFUSED(switch_to(site.prefix(), 1, disk), Conflict, "sealift-install apply");
  CHECK(site.apply(made, true).action == InstallPlan::Action::Nothing);  // looking needs no lock
}

namespace {

// Somebody else does `rival` between our look at a prefix that is not there and our lock on it.
class RivalDisk final : public Disk {
 public:
  explicit RivalDisk(std::function<void()> rival) : rival_(std::move(rival)) {}
  bundle::Descriptor open_lock(const fs::path& path) override {
    if (rival_) std::exchange(rival_, nullptr)();
    return Disk::open_lock(path);
  }

 private:
  std::function<void()> rival_;
};

}  // namespace

TEST_CASE("an installer that comes late to a fresh prefix goes on from what the other one made of it") {
  const Site site;
  const MadeBundle made = site.make(three_kinds());
  SUBCASE("the same bundle is found done") {
    RivalDisk disk([&] { site.apply(made); });
    const Applied applied = site.apply(made, disk);
    CHECK(applied.action == InstallPlan::Action::Nothing);
    CHECK(applied.generation == 1);
  }
  SUBCASE("the next version becomes the second generation") {
    const MadeBundle next = site.make(three_kinds_and_more(), "bundle2");
    RivalDisk disk([&] { site.apply(made); });
    const Applied applied = site.apply(next, disk);
    CHECK(applied.generation == 2);
    CHECK(!applied.reused.empty());
    CHECK(fs::read_symlink(site.current()) == "generations/0002");
  }
  SUBCASE("an older version is refused, as it would have been a moment later") {
    const MadeBundle next = site.make(three_kinds_and_more(), "bundle2");
    RivalDisk disk([&] { site.apply(next); });
    CHECK_REFUSED(site.apply(made, disk), Rollback, "older");
    CHECK(fs::read_symlink(site.current()) == "generations/0001");
  }
  SUBCASE("who is still at work is named") {
    Disk other;  // outlives the lock, which gives it its anchor back
    std::optional<PrefixLock> held;
    RivalDisk disk([&] {
      site.apply(made);
      held.emplace(site.prefix(), other, "switch");
    });
    CHECK_REFUSED(site.apply(made, disk), Conflict, "sealift-install switch");
  }
  CHECK(!fs::exists(site.prefix().staging()));
}
