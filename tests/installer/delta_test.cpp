// SPDX-License-Identifier: Apache-2.0
// Inventories and deltas: what a store promises, what a delta takes from it, and what happens when it is not there.
#include "installer/upkeep/inventory.hpp"

#include "installer/doctor/doctor.hpp"
#include "installer/preflight/verification.hpp"
#include "installer/store/item_check.hpp"
#include "installer/store/patch_base.hpp"
#include "tests/installer/site.hpp"
#include "tests/installer/stopping_disk.hpp"
#include "tests/support/tiny_patch.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// The next version; what `inventory` has is not carried.
TinyBundle second(const bundle::Inventory& inventory) {
  TinyBundle tiny = three_kinds_and_more();
  for (TinyItem& item : tiny.items) {
    item.absent = inventory.items.contains(store_name_of(item, tiny));
  }
  tiny.base = bundle::inventory_digest(inventory);
  return tiny;
}

// Every path of a generation with what it holds, but for its own record.
std::map<std::string, std::string> contents(const fs::path& generation) {
  std::map<std::string, std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(generation)) {
    const std::string path = entry.path().lexically_relative(generation).string();
    if (path == "generation.json") continue;
    found[path] = entry.is_symlink()        ? "-> " + fs::read_symlink(entry.path()).string()
                  : entry.is_regular_file() ? read_file(entry.path())
                                            : "";
  }
  return found;
}

std::string item_of(const MadeBundle& made, const std::string& path) {
  return bundle::store_item_name(*made.manifest.find(bundle::SafePath::parse(path, "")));
}

// `wheel` as a patch on `base`, which a store has under the name `content`.
TinyItem patch_item(const TinyWheel& wheel, const TinyWheel& base, const bundle::Digest& content) {
  TinyItem item = wheel_item(wheel);
  item.encoding = bundle::Encoding::Patch;
  item.patch = make_patch(wheel, base);
  item.built_on = content;
  return item;
}

// What the patches below build on: a site that has `base`, and the next version of its bundle, of which `wheel` is a
// patch and all else is absent.
struct PatchedSite {
  TinyWheel base, wheel;
  Site site;
  bundle::Digest content{};  // of the base
  TinyBundle next = {};

  explicit PatchedSite(std::size_t size = 40'000) : base(with_library(size)), wheel(with_changed_library(size)) {
    TinyBundle first = three_kinds();
    first.items.push_back(wheel_item(base));
    const MadeBundle made = site.make(first, "first");
    site.apply(made);
    content = made.manifest.find(bundle::SafePath::parse(first.items.back().path, ""))->content;
    next = three_kinds();
    next.version = 2;
    for (TinyItem& item : next.items) item.absent = true;
    next.items.push_back(patch_item(wheel, base, content));
  }
  fs::path base_file(const std::string& path) const {
    return site.prefix().store() / content.hex() / "site-packages" / path;
  }
  // The same version where nothing is left out.
  TinyBundle whole() const {
    TinyBundle tiny = three_kinds();
    tiny.version = 2;
    tiny.items.push_back(wheel_item(wheel));
    return tiny;
  }
  // That nothing of a refused installation can be seen.
  void check_untouched(const std::map<std::string, std::string>& before) const {
    CHECK(contents(site.prefix().generation(1)) == before);
    CHECK(fs::read_symlink(site.prefix().current()) == "generations/0001");
    CHECK_FALSE(fs::exists(site.prefix().generation(2)));
    for (const std::string& name : item_names(site.prefix()))
      if (name != content.hex()) CHECK(item_fault(site.prefix().store() / name) == "");
  }
};

Checkup checked(const Site& site, const fs::path& repair = {}) {
  Disk disk;
  bundle::Progress silent(nullptr);
  return doctor({.prefix = site.prefix(), .repair = repair, .now = kNow, .threads = 1}, disk, silent);
}

}  // namespace

TEST_CASE("an inventory names what the store holds and which bundles are installed, and nothing else") {
  const Site site, other;
  const MadeBundle made = site.make(three_kinds());
  const Applied applied = site.apply(made);
  other.apply(made);
  const TakenInventory taken = take_inventory(site.prefix());
  CHECK(taken.warnings.empty());
  CHECK(taken.found.items.size() == 4);
  for (const bundle::Entry& entry : made.manifest.entries) CHECK(taken.found.has(entry));
  CHECK(taken.found.generations ==
        std::set<bundle::Inventory::Installed>{
            {.name = "tiny", .channel = "test", .version = 1, .identity = applied.identity}});
  const std::string text = bundle::write_inventory(taken.found);
  CHECK(text == bundle::write_inventory(take_inventory(other.prefix()).found));  // no place, no time, no host
  CHECK(text.find(site.dir.path().string()) == text.npos);
  CHECK(bundle::parse_inventory(text, "") == taken.found);
  CHECK_REFUSED(take_inventory(Prefix(site.dir / "elsewhere")), Missing, "elsewhere");
}

TEST_CASE("what a delta carries is unpacked, the rest is linked from the store, and the result is the whole one's") {
  const Site site, whole;
  site.apply(site.make(three_kinds()));
  const bundle::Inventory inventory = take_inventory(site.prefix()).found;
  const MadeBundle made = site.make(second(inventory), "delta");
  CHECK(made.manifest.base == bundle::inventory_digest(inventory));
  const Applied planned = site.apply(made, true);
  CHECK(planned.unpacked.size() == 1);
  CHECK(planned.reused.size() == 4);
  const Applied applied = site.apply(made);
  CHECK(applied.unpacked == std::vector<std::string>{"wheels/more-1.0-py3-none-any.whl"});
  CHECK(applied.generation == 2);
  CHECK(applied.record->audit.wheels == 2);
  whole.apply(whole.make(second({}), "whole"));
  CHECK(contents(site.prefix().generation(2)) == contents(whole.prefix().generation(1)));
  CHECK(site.apply(made).action == InstallPlan::Action::Nothing);
}

TEST_CASE("a delta verifies by itself, and says what it does not carry") {
  const Site site;
  site.apply(site.make(three_kinds()));
  const MadeBundle made = site.make(second(take_inventory(site.prefix()).found), "delta");
  bundle::Progress silent(nullptr);
  const Verification result = verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 1, silent);
  CHECK(result.failures.empty());
  CHECK(result.entries == 5);
  CHECK(result.absent == 4);
  CHECK(result.base == made.manifest.base);
}

TEST_CASE("a delta onto a store that lacks something is refused with all of it before anything is written") {
  const Site site;
  site.apply(site.make(three_kinds()));
  const MadeBundle made = site.make(second(take_inventory(site.prefix()).found), "delta");
  SUBCASE("no prefix at all") {
    const Site fresh;
    for (const bool dry_run : {true, false}) {
      const bundle::Error error = refusal([&] { fresh.apply(made, dry_run); });
      CHECK(error.code() == bundle::ErrorCode::Missing);
      for (const char* path : {"files/notes", "files/program", "trees/python.tar", "wheels/demo-1.0"})
        CHECK(mentions(error, path));
      CHECK_FALSE(mentions(error, "wheels/more"));
      CHECK(mentions(error, made.manifest.base->hex().c_str()));
    }
    CHECK_FALSE(fs::exists(fresh.prefix().folder()));
  }
  SUBCASE("items that are gone or damaged in every way, told together") {
    const fs::path store = site.prefix().store();
    fs::remove_all(store / item_of(made, "files/notes"));
    fs::remove(store / item_of(made, "trees/python.tar") / "tree/bin/alias");
    const fs::path program = store / item_of(made, "files/program") / "file";
    const fs::path record = store / item_of(made, "wheels/demo-1.0-py3-none-any.whl") / "record.json";
    for (const fs::path& file : {program, record}) {
      fs::remove(file);
      write_file(file, "{}");
    }
    const auto before = installed(site.prefix().folder());
    const bundle::Error error = refusal([&] { site.apply(made); });
    CHECK(error.code() == bundle::ErrorCode::Missing);
    CHECK(mentions(error, "files/notes"));
    CHECK(mentions(error, "tree/bin/alias is another link"));
    CHECK(mentions(error, "file is not as its record says"));
    CHECK(mentions(error, "its record cannot be used"));
    CHECK(installed(site.prefix().folder()) == before);
    const TakenInventory taken = take_inventory(site.prefix());  // promises none of them any more
    CHECK(taken.found.items.empty());
    CHECK(taken.warnings.size() == 3);
  }
  SUBCASE("a link in the place of a program, and one that leads elsewhere") {
    const fs::path store = site.prefix().store();
    const fs::path alias = store / item_of(made, "trees/python.tar") / "tree/bin/alias";
    const fs::path program = store / item_of(made, "files/program") / "file";
    const std::string as_long(fs::file_size(program), 'x');  // a link's size is that of its text
    fs::remove(alias), fs::create_symlink("another", alias);
    fs::remove(program), fs::create_symlink(as_long, program);
    const bundle::Error error = refusal([&] { site.apply(made); });
    CHECK(error.code() == bundle::ErrorCode::Missing);
    CHECK(mentions(error, "tree/bin/alias is another link"));
    CHECK(mentions(error, "file is not as its record says"));
  }
  SUBCASE("another item under its name") {
    const fs::path store = site.prefix().store();
    const fs::path notes = store / item_of(made, "files/notes"), program = store / item_of(made, "files/program");
    fs::remove_all(notes);
    fs::rename(program, notes);
    const bundle::Error error = refusal([&] { site.apply(made); });
    CHECK(mentions(error, "its record is another item's"));
    CHECK(mentions(error, "files/program"));
  }
}

TEST_CASE("the same bytes of another kind are not what a delta needs") {
  const Site site;
  TinyBundle tiny;
  tiny.items = {file_item("files/a", "#!/bin/sh\n", "share/a")};
  site.apply(site.make(tiny));
  tiny.version = 2;
  tiny.items = {file_item("files/a", "#!/bin/sh\n", "bin/a", true)};
  tiny.items[0].absent = true;
  CHECK_REFUSED(site.apply(site.make(tiny, "delta")), Missing, "files/a");
}

TEST_CASE("what a delta neither carries nor places need not be there") {
  const Site site;
  MadeBundle made = site.make([] {
    TinyBundle tiny;
    tiny.items.push_back(file_item("files/notes", "notes\n", "share/notes"));
    tiny.items.back().absent = true;
    return tiny;
  }());
  std::erase_if(made.manifest.environment.placements, [](const auto& p) { return p.entry.text() == "files/notes"; });
  reseal(made, {one_key_root(site.key)}, {&site.key});
  CHECK(site.apply(made).unpacked.size() == 1);
}

TEST_CASE("a wheel that is carried as a patch installs what the whole one installs, and can be built on again") {
  PatchedSite patched(3'000'000);
  const Site whole;
  const MadeBundle made = patched.site.make(patched.next, "delta");
  CHECK(made.manifest.installer_level == 5);
  CHECK(made.manifest.payload.size < 30'000);
  const std::string path = patched.next.items.back().path;
  const Applied applied = patched.site.apply(made);
  CHECK(applied.unpacked == std::vector<std::string>{path});
  whole.apply(whole.make(patched.whole(), "whole"));
  CHECK((contents(patched.site.prefix().generation(2)) == contents(whole.prefix().generation(1))));
  CHECK(checked(patched.site).findings.empty());

  TinyBundle third = patched.next;
  third.version = 3;
  const TinyWheel newest = with_changed_library(3'000'000, "1.2");
  third.items.back() =
      patch_item(newest, patched.wheel, made.manifest.find(bundle::SafePath::parse(path, ""))->content);
  patched.site.apply(patched.site.make(third, "third"));
  TinyBundle fresh = patched.whole();
  fresh.version = 3;
  fresh.items.back() = wheel_item(newest);
  whole.apply(whole.make(fresh, "fresh"));
  CHECK((contents(patched.site.prefix().generation(3)) == contents(whole.prefix().generation(2))));
  CHECK(checked(patched.site).findings.empty());
}

TEST_CASE("a delta with patches verifies by itself, deeply as far as it is carried") {
  PatchedSite patched;
  const MadeBundle made = patched.site.make(patched.next, "delta");
  bundle::Progress silent(nullptr);
  const Verification result = verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 1, silent, true);
  CHECK(result.failures.empty());
  CHECK(result.absent == 4);
  const bundle::VerifiedBundle verified = bundle::verify(bundle::open(made.folder), made.trusted, kNow);
  CHECK_REFUSED(verified.stream(made.manifest.entries.back(), [](bundle::ByteView) {}), CannotCheck, "as a patch");
}

TEST_CASE("a patch on what the store lacks or has damaged is refused, and nothing of it is seen") {
  PatchedSite patched;
  const MadeBundle made = patched.site.make(patched.next, "delta");
  const std::map<std::string, std::string> before = contents(patched.site.prefix().generation(1));
  const fs::path library = patched.base_file("native/lib.so");
  const auto rewrite = [](const fs::path& file, const std::string& bytes) {
    fs::remove(file);
    write_file(file, bytes);
  };
  SUBCASE("no such wheel") {
    fs::remove_all(patched.site.prefix().store() / patched.content.hex());
    const auto there = installed(patched.site.prefix().folder());
    const bundle::Error error = refusal([&] { patched.site.apply(made); });
    CHECK(error.code() == bundle::ErrorCode::Missing);
    CHECK(mentions(error, "native-1.1"));
    CHECK(mentions(error, patched.content.hex()));
    CHECK(installed(patched.site.prefix().folder()) == there);
  }
  SUBCASE("a file of another size, before anything is written") {
    rewrite(library, "short");
    CHECK_REFUSED(patched.site.apply(made), Missing, "lib.so is not as its record says");
  }
  SUBCASE("a link in its place") {
    fs::remove(library);
    fs::create_symlink("/etc/passwd", library);
    CHECK_REFUSED(patched.site.apply(made), Missing, "lib.so is not as its record says");
  }
  SUBCASE("a file that was changed and has its size: by its digest") {
    std::string bytes = read_file(library);
    bytes[bytes.size() / 5] ^= 1;
    rewrite(library, bytes);
    CHECK_REFUSED(patched.site.apply(made), Digest, "builds on has changed");
  }
  SUBCASE("a file that is left out and was changed") {
    const fs::path table = patched.base_file("native/table.py");
    std::string bytes = read_file(table);
    bytes[0] ^= 1;
    rewrite(table, bytes);
    CHECK_REFUSED(patched.site.apply(made), Digest, "table.py");
  }
  patched.check_untouched(before);
  patched.site.apply(patched.site.make(patched.whole(), "whole"));  // the way on
  CHECK(patched.site.apply(patched.site.make(patched.whole(), "again"), true).action == InstallPlan::Action::Nothing);
}

TEST_CASE("a patch builds on the very wheel that it names, and on no other item under its name") {
  PatchedSite patched;
  const MadeBundle made = patched.site.make(patched.next, "delta");
  const bundle::Entry& entry = made.manifest.entries.back();
  const fs::path folder = patched.site.prefix().store();
  const Store store(patched.site.prefix());
  REQUIRE(entry.base == patched.content);
  CHECK_NOTHROW(PatchBase(store, entry));
  fs::remove_all(folder / patched.content.hex());
  SUBCASE("of another wheel") {
    fs::rename(folder / item_of(made, "wheels/demo-1.0-py3-none-any.whl"), folder / patched.content.hex());
    CHECK_REFUSED(PatchBase(store, entry), Format, "content differs from its name");
  }
  SUBCASE("of the same content, and no wheel") {
    bundle::Entry other = entry;
    other.base = made.manifest.find(bundle::SafePath::parse("files/notes", ""))->content;
    fs::rename(folder / item_of(made, "files/notes"), folder / other.base.hex());
    CHECK_REFUSED(PatchBase(store, other), Format, "content differs from its name");
  }
}

TEST_CASE("a signed patch that is hostile is refused, and nothing of it is seen") {
  PatchedSite patched(200'000);
  const std::map<std::string, std::string> before = contents(patched.site.prefix().generation(1));
  TinyItem& item = patched.next.items.back();
  TinyPatch parts(item.patch);
  const std::string library = bundle::sha256(bundle::as_bytes(patched.base.files.at("native/lib.so"))).hex();
  const auto replace = [&](const std::string& from, const std::string& to) {
    parts.lines.replace(parts.lines.find(from), from.size(), to);
  };
  SUBCASE("it builds on a file that the wheel does not have") {
    replace(library, bundle::sha256(bundle::as_bytes("other")).hex());
    item.patch = parts.text();
    CHECK_REFUSED(patched.site.apply(patched.site.make(patched.next, "delta")), Missing, "has no such file");
  }
  SUBCASE("it makes another file than RECORD promises") {
    std::string other = patched.wheel.files.at("native/lib.so");
    other[5] ^= 1;
    const bundle::Bytes frame =
        bundle::zstd_patch(bundle::as_bytes(patched.base.files.at("native/lib.so")), bundle::as_bytes(other));
    const std::size_t line = parts.lines.find(library) + library.size() + 1;
    const std::size_t size = std::stoul(parts.lines.substr(line));
    parts.lines.replace(line, parts.lines.find('\n', line) - line, std::to_string(frame.size()));
    parts.bodies.replace(parts.bodies.size() - size, size, bundle::as_text(frame));
    item.patch = parts.text();
    CHECK_REFUSED(patched.site.apply(patched.site.make(patched.next, "delta")), Digest, "not what was published");
  }
  SUBCASE("it unpacks to more than was signed") {
    patched.next.installed_size = 30'000;
    CHECK_REFUSED(patched.site.apply(patched.site.make(patched.next, "delta")), Format, "more than was signed");
  }
  SUBCASE("it builds on an item that is no wheel") {
    const MadeBundle made = patched.site.make(patched.next, "look");
    item.built_on = made.manifest.find(bundle::SafePath::parse("files/notes", ""))->content;
    CHECK_REFUSED(patched.site.apply(patched.site.make(patched.next, "delta")), Missing, "not there");
  }
  SUBCASE("its archive is another wheel's") {
    item.patch = make_patch(with_changed_library(200'000, "1.2"), patched.base);
    CHECK_REFUSED(patched.site.apply(patched.site.make(patched.next, "delta")), Format, "");
  }
  patched.check_untouched(before);
}

TEST_CASE("an installation of patches that is killed at any step shows nothing half, and the next run ends it") {
  PatchedSite patched(20'000);
  const MadeBundle made = patched.site.make(patched.next, "delta");
  const Site whole;
  whole.apply(whole.make(patched.whole(), "whole"));
  const std::map<std::string, std::string> expected = contents(whole.prefix().generation(1));
  const std::map<std::string, std::string> before = contents(patched.site.prefix().generation(1));
  bool stopped = true;
  int steps = 0;
  for (; stopped; ++steps) {
    CAPTURE(steps);
    StoppingDisk disk(steps);
    try {
      patched.site.apply(made, disk);
      stopped = false;
    } catch (const StoppingDisk::Stop&) {
    }
    REQUIRE(contents(patched.site.prefix().generation(1)) == before);
    for (const std::string& name : item_names(patched.site.prefix()))
      REQUIRE(item_fault(patched.site.prefix().store() / name) == "");
    if (fs::exists(patched.site.prefix().generation(2)))
      REQUIRE(contents(patched.site.prefix().generation(2)) == expected);
  }
  CHECK(steps > 10);
  CHECK(contents(patched.site.prefix().current()) == expected);
}

TEST_CASE("the doctor repairs a wheel that came as a patch, as long as the store has what it builds on") {
  PatchedSite patched;
  const MadeBundle made = patched.site.make(patched.next, "delta");
  patched.site.apply(made);
  const std::string content = made.manifest.entries.back().content.hex();
  const fs::path library = patched.site.prefix().store() / content / "site-packages/native/lib.so";
  const auto damage = [&] {
    std::string bytes = read_file(library);
    bytes[7] ^= 1;
    fs::remove(library);
    write_file(library, bytes);
    fs::permissions(library, fs::perms(0444));
  };
  damage();
  CHECK_FALSE(checked(patched.site).findings.empty());
  CHECK(checked(patched.site, made.folder).findings.empty());
  CHECK(checked(patched.site).findings.empty());
  CHECK(read_file(library) == patched.wheel.files.at("native/lib.so"));
  damage();
  fs::remove_all(patched.site.prefix().store() / patched.content.hex());
  const Checkup left = checked(patched.site, made.folder);
  CHECK(std::any_of(left.findings.begin(), left.findings.end(),
                    [](const Deviation& finding) { return finding.paths.front().ends_with("native/lib.so"); }));
}
