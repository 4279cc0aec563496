// SPDX-License-Identifier: Apache-2.0
// What is taken from the store is what was signed: whatever was written to it since is found before it is linked, and
// what nobody touched is not read again.
#include "installer/store/stamps.hpp"

#include <fcntl.h>

#include <mutex>
#include <set>
#include <utility>

#include "installer/doctor/doctor.hpp"
#include "installer/generations/generation.hpp"
#include "installer/upkeep/gc.hpp"
#include "installer/upkeep/inventory.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

const std::string kModule = "lib/python3.11/site-packages/demo/__init__.py";

// Writes other bytes of the same number into the file itself, as a program that edits in place does.
void edit_in_place(const fs::path& path) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  flip_bit(path, 0);
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::remove);
}

void set_times(const fs::path& path, const struct stat& status) {
  const timespec times[] = {status.st_atim, status.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

struct TwoVersions : Site {
  MadeBundle first = make(three_kinds(), "first"), second = make(three_kinds_and_more(), "second");

  TwoVersions() { Site::apply(first); }
  MadeBundle delta() const {
    const bundle::Inventory inventory = take_inventory(prefix()).found;
    TinyBundle tiny = three_kinds_and_more();
    for (TinyItem& item : tiny.items) {
      item.absent = inventory.items.contains(store_name_of(item, tiny));
    }
    tiny.base = bundle::inventory_digest(inventory);
    return make(tiny, "delta");
  }
  fs::path module() const { return prefix().generation(1) / kModule; }
  fs::path item_of(const std::string& path) const {
    return prefix().store() / bundle::store_item_name(*first.manifest.find(bundle::SafePath::parse(path, "")));
  }
  ApplyOptions verifying(const MadeBundle& made) const {
    ApplyOptions asked = options(made);
    asked.verify_store = true;
    return asked;
  }
};

// A file system with fs-verity: notes what each file held when it was put under the kernel's protection.
class ProtectingDisk final : public Disk {
 public:
  bool protect(const fs::path& path) override {
    const std::lock_guard lock(guard_);
    protected_.insert(read_file(path));
    return true;
  }
  std::multiset<std::string> taken() { return std::exchange(protected_, {}); }

 private:
  std::mutex guard_;
  std::multiset<std::string> protected_;
};

}  // namespace

TEST_CASE("a file that was edited in place in an older generation goes into no next one, whole bundle or delta") {
  const TwoVersions site;
  const MadeBundle delta = site.delta();
  struct stat before = status_of_path(site.module());
  edit_in_place(site.module());
  SUBCASE("as an editor leaves it") {}
  SUBCASE("with its old times put back") {
    set_times(site.module(), before);
  }
  SUBCASE("and the stamps gone") {
    fs::remove(site.prefix().stamps());
  }
  for (const MadeBundle* made : {&site.second, &delta}) {
    CHECK_REFUSED(site.apply(*made), Digest, "changed since it was unpacked");
    CHECK_REFUSED(site.apply(*made), Digest, "doctor --repair");
    CHECK(fs::read_symlink(site.current()) == "generations/0001");
    CHECK(generation_numbers(site.prefix()).size() == 1);
  }
  bundle::Progress silent(nullptr);
  Disk disk;
  CHECK(doctor({.prefix = site.prefix(), .repair = site.first.folder, .now = kNow}, disk, silent).findings.empty());
  CHECK(site.apply(site.second).generation == 2);
}

TEST_CASE("the removal of a failed generation hides no edit in place of a file that its bundle does not have") {
  const Site site;
  TinyBundle tiny = three_kinds();
  tiny.items.push_back(file_item("files/extra", "extra\n", "share/extra"));
  const MadeBundle first = site.make(tiny, "first");
  site.apply(first);
  const bundle::Entry* entry = first.manifest.find(bundle::SafePath::parse("files/extra", ""));
  const fs::path extra = site.prefix().store() / bundle::store_item_name(*entry) / "file";
  const struct stat before = status_of_path(extra);
  edit_in_place(extra);
  set_times(extra, before);
  fs::create_directories(site.prefix().failed() / "generation");
  site.apply(site.make(three_kinds_and_more(), "second"));
  CHECK_FALSE(fs::exists(site.prefix().failed()));
  tiny.version = 3;
  CHECK_REFUSED(site.apply(site.make(tiny, "third")), Digest, "changed since it was unpacked");
  CHECK(fs::read_symlink(site.current()) == "generations/0002");
}

TEST_CASE("a file of the store that is another one, or a link, is found") {
  const TwoVersions site;
  const fs::path notes = site.item_of("files/notes") / "file";
  const std::string text = read_file(notes);
  fs::remove(notes);
  SUBCASE("other bytes") {
    write_file(notes, std::string(text.size(), 'x'));
    CHECK_REFUSED(site.apply(site.second), Digest, "changed since");
  }
  SUBCASE("of another size") {
    write_file(notes, text + "x");
    CHECK_REFUSED(site.apply(site.second), Digest, std::to_string(text.size() + 1) + " bytes");
  }
  SUBCASE("a link to a file that has the bytes") {
    write_file(site.dir / "elsewhere", text);
    fs::create_symlink(site.dir / "elsewhere", notes);
    CHECK_REFUSED(site.apply(site.second), Digest, "a symbolic link");
  }
  SUBCASE("the same bytes in a new file are hashed and taken") {
    write_file(notes, text);
    fs::permissions(notes, fs::perms(0444));
    CHECK(site.apply(site.second).hashed == 1);
  }
  SUBCASE("a folder of it is a link") {
    write_file(notes, text);
    const fs::path tree = site.item_of("trees/python.tar") / "tree";
    fs::rename(tree, site.dir / "tree");
    fs::create_symlink(site.dir / "tree", tree);
    CHECK_REFUSED(site.apply(site.second), Conflict, "nothing was followed");
  }
}

TEST_CASE("untouched files are not read again; what was copied, or lost its stamps, is read once") {
  const TwoVersions site;
  TinyBundle third = three_kinds_and_more();
  third.version = 3;
  SUBCASE("untouched") {}
  SUBCASE("with times of its own, and the same bytes") {
    struct stat status = status_of_path(site.module());
    status.st_mtim.tv_sec -= 1000;
    set_times(site.module(), status);
    CHECK(site.apply(site.second).hashed == 1);
  }
  SUBCASE("with torn stamps") {
    fs::permissions(site.prefix().stamps(), fs::perms(0644));
    flip_bit(site.prefix().stamps(), 8 * 200);
    CHECK(site.apply(site.second).hashed > 3);
  }
  SUBCASE("a copy of the whole prefix") {
    fs::rename(site.prefix().folder(), site.dir / "moved");
    fs::copy(site.dir / "moved", site.prefix().folder(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    CHECK(site.apply(site.second).hashed > 3);
  }
  SUBCASE("after the older generation was removed") {
    site.apply(site.second);
    Disk disk;
    CHECK(gc({.prefix = site.prefix(), .keep = 1}, disk).generations == std::vector<unsigned>{1});
  }
  SUBCASE("after a switch, and a bundle that was installed already") {
    site.apply(site.second);
    Disk disk;
    CHECK(site.apply(site.first, disk, false, true).action == InstallPlan::Action::SwitchTo);
  }
  SUBCASE("after the last failed generation, which linked it, was removed") {
    fs::create_directories(site.prefix().failed() / "generation");
    fs::create_hard_link(site.item_of("files/notes") / "file", site.prefix().failed() / "generation/notes");
    CHECK(site.apply(site.second).hashed == 1);  // nobody of ours made that name
    CHECK(!fs::exists(site.prefix().failed()));
  }
  CHECK(site.apply(site.make(third, "third")).hashed == 0);
}

TEST_CASE("an item's record is the one that was written, or its item is not used") {
  const TwoVersions site;
  const fs::path item = site.item_of("files/notes"), record = item / "record.json";
  const std::string text = read_file(item / "file"), forged(text.size(), 'x');
  std::string other = read_file(record);
  const auto hex = [](const std::string& bytes) { return bundle::sha256(bundle::as_bytes(bytes)).hex(); };
  const std::size_t at = other.find("\"files\":");
  other.replace(other.find(hex(text), at), 64, hex(forged));
  for (const auto& [path, bytes] : {std::pair(item / "file", forged), {record, other}}) {
    fs::remove(path);
    write_file(path, bytes);
    fs::permissions(path, fs::perms(0444));
  }
  CHECK_REFUSED(site.apply(site.second), Digest, "the record of a store item was changed");
  CHECK_REFUSED(site.apply(site.delta()), Digest, "the record of a store item was changed");
  SUBCASE("with the stamps gone too, the bundle tells, where it is asked to") {
    fs::remove(site.prefix().stamps());
    CHECK_REFUSED(site.apply(site.verifying(site.second)), Digest, "not what the signed entry unpacks to");
  }
}

TEST_CASE("a start-up file that was edited in the store is that, and no fault of the bundle, whatever it says now") {
  const std::string folder = "demo_path\n";
  TinyBundle tiny;
  tiny.items = {wheel_item({.files = {{"demo.pth", folder}, {"demo/__init__.py", "x"}}})};
  const Site site;
  site.apply(site.make(tiny, "first"));
  const fs::path pth = site.site_packages() / "demo.pth";
  tiny.version = 2;
  for (const std::string text : {"import os\n", "other_dir\n", "demo_path\n\n"}) {
    CAPTURE(text);
    fs::permissions(pth, fs::perms::owner_write, fs::perm_options::add);
    write_file(pth, text);  // the same file, so in the store too
    CHECK_REFUSED(site.apply(site.make(tiny, "next" + std::to_string(tiny.version))), Digest,
                  "changed since it was unpacked");
    CHECK(fs::read_symlink(site.current()) == "generations/0001");
    ++tiny.version;
  }
}

TEST_CASE("an item that has the name of another one is not used, with stamps or without") {
  const TwoVersions site;
  const fs::path notes = site.item_of("files/notes"), program = site.item_of("files/program");
  const bundle::Entry* entry = site.first.manifest.find(bundle::SafePath::parse("files/notes", ""));
  const std::string own = read_file(notes / "record.json"), others = read_file(program / "record.json");
  const Store store(site.prefix());
  CHECK(store.record(*entry, own).content == entry->content);
  CHECK_REFUSED(store.record(*entry, others), Format, "content differs from its name");
  bundle::Entry tree = *entry;
  tree.kind = bundle::EntryKind::Tree;
  CHECK_REFUSED(store.record(tree, own), Format, "content differs from its name");
  SUBCASE("with stamps") {}
  SUBCASE("without") {
    fs::remove(site.prefix().stamps());
  }
  fs::remove_all(notes);
  fs::rename(program, notes);
  CHECK_REFUSED(site.apply(site.second), Format, "content differs from its name");
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
}

TEST_CASE("--verify-store hashes every file that is reused, and what is installed already") {
  const TwoVersions site;
  SUBCASE("of the next bundle") {
    CHECK(site.apply(site.verifying(site.second)).hashed > 3);
  }
  SUBCASE("of the one that is current") {
    CHECK(site.apply(site.verifying(site.first)).action == InstallPlan::Action::Nothing);
    edit_in_place(site.module());
    CHECK(site.apply(site.first).action == InstallPlan::Action::Nothing);
    CHECK_REFUSED(site.apply(site.verifying(site.first)), Digest, "demo/__init__.py");
  }
}

TEST_CASE("fs-verity takes each file that is unpacked, whole, and it is not hashed again") {
  const Site site;
  ProtectingDisk disk;
  site.apply(site.make(three_kinds(), "first"), disk);
  std::multiset<std::string> stored;
  for (const auto& there : fs::recursive_directory_iterator(site.prefix().store()))
    if (there.is_regular_file() && !there.is_symlink() && there.path().filename() != kRecordName)
      stored.insert(read_file(there.path()));
  CHECK(stored.size() > 5);
  CHECK(disk.taken() == stored);
  CHECK(site.apply(site.make(three_kinds_and_more(), "second"), disk).hashed == 0);
  CHECK(disk.taken().size() < stored.size());  // of the new wheel alone
}

TEST_CASE("what an interrupted run left in staging is hashed before it is used") {
  Site site;
  site.threads = 1;
  TinyBundle tiny = three_kinds();
  tiny.items.push_back(file_item("files/zz", numbers_text(1, 2000), "share/zz"));
  const MadeBundle made = site.make(tiny);
  const bundle::Entry* last = made.manifest.find(bundle::SafePath::parse("files/zz", ""));
  flip_bit(made.volume(0), (last->offset + last->stored_size / 2) * 8);
  CHECK_REFUSED(site.apply(made), Digest, "differs from what was signed");
  flip_bit(made.volume(0), (last->offset + last->stored_size / 2) * 8);
  const fs::path staged = site.prefix().staged_items() /
                          bundle::store_item_name(*made.manifest.find(bundle::SafePath::parse("files/notes", "")));
  REQUIRE(fs::exists(staged / "file"));
  SUBCASE("and is used when it is right") {
    CHECK(site.apply(made).hashed > 0);
  }
  SUBCASE("and refused when it is not") {
    edit_in_place(staged / "file");
    CHECK_REFUSED(site.apply(made), Digest, "changed since it was unpacked");
  }
}

TEST_CASE("a run says how much of the medium it has read, so that a damaged rest is no surprise") {
  const TwoVersions site;
  const Applied again = site.apply(site.first);
  CHECK(again.chunks > 0);
  CHECK(again.chunks_read == 0);
  const Site fresh;
  const Applied whole = fresh.apply(fresh.make(three_kinds()));
  CHECK(whole.chunks_read == whole.chunks);
  TinyBundle tiny = three_kinds_and_more();
  tiny.items.insert(tiny.items.begin(), file_item("files/big", numbers_text(3, 20000), "share/big"));
  tiny.version = 3;
  const MadeBundle big = site.make(tiny, "big");
  site.apply(big);
  tiny.version = 4;
  tiny.items.push_back(file_item("files/zz", "new", "share/zz"));
  const MadeBundle next = site.make(tiny, "next");
  const bundle::Entry* unread = next.manifest.find(bundle::SafePath::parse("files/big", ""));
  flip_bit(next.volume(0), (unread->offset + unread->stored_size / 2) * 8);
  const Applied applied = site.apply(next);  // it had no need of the damaged chunk
  CHECK(applied.chunks_read > 0);
  CHECK(applied.chunks_read < applied.chunks);
}
