// SPDX-License-Identifier: Apache-2.0
// Inventories and deltas: what a store promises, what a delta takes from it, and what happens when it is not there.
#include "installer/generations/inventory.hpp"

#include "installer/preflight/verification.hpp"
#include "tests/installer/site.hpp"

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
