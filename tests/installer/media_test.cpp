// SPDX-License-Identifier: Apache-2.0
// A bundle on several discs: in several folders, one after the other in one drive, missing, bad, and replaced.
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

TinyBundle on_discs() {
  TinyBundle tiny{.volume_size = 16384};
  tiny.items.clear();
  for (unsigned i = 0; i < 6; ++i) {
    TinyWheel wheel{.name = "w" + std::to_string(i), .files = {}};
    wheel.files[wheel.name + "/numbers.py"] = numbers_text(i, 2000);
    tiny.items.push_back(wheel_item(wheel));
  }
  return tiny;
}

// A site whose bundle has its volumes elsewhere, and somebody who brings them.
struct Discs : Site {
  MadeBundle made = make(on_discs());
  fs::path shelf = dir / "shelf";
  std::vector<std::string> asked;

  Discs() {
    fs::create_directories(shelf);
    REQUIRE(made.manifest.payload.volumes.size() >= 4);
  }
  fs::path volume_name(std::size_t index) const { return made.volume(index).filename(); }
  void put_on_shelf(std::size_t index) { fs::rename(made.volume(index), shelf / volume_name(index)); }
  Applied apply_with(const std::vector<fs::path>& folders, const bundle::VolumeAsker& ask = {}) {
    ApplyOptions as_asked = options(made);
    as_asked.threads = 3;
    as_asked.volumes = folders;
    as_asked.ask = ask;
    return apply(as_asked);
  }
  bundle::VolumeAsker answering(const std::function<std::optional<fs::path>(const bundle::Volume&)>& answer) {
    return [this, answer](const bundle::Volume& volume, const bundle::Error&) {
      asked.push_back(volume.name);
      return answer(volume);
    };
  }
  void check_installed() const {
    for (unsigned i = 0; i < 6; ++i)
      CHECK(read_file(site_packages() / ("w" + std::to_string(i)) / "numbers.py") == numbers_text(i, 2000));
  }
};

// Files of volumes that this process holds open.
int open_volumes() {
  int count = 0;
  for (const fs::directory_entry& open : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    count += fs::read_symlink(open.path(), ignored).string().find(".vol") != std::string::npos;
  }
  return count;
}

}  // namespace

TEST_CASE("volumes may lie in several folders, in any order, beside other things") {
  Discs site;
  fs::create_directories(site.dir / "other");
  site.put_on_shelf(0), site.put_on_shelf(2);
  fs::rename(site.made.volume(1), site.dir / "other" / site.volume_name(1));
  write_file(site.shelf / "stranger-1.vol001", "another bundle's");
  CHECK_REFUSED(site.apply_with({}), Missing, site.volume_name(0).string());
  CHECK_REFUSED(site.apply_with({site.shelf}), Missing, "not in " + site.made.folder.string());
  CHECK(!fs::exists(site.prefix().folder()));
  CHECK(site.apply_with({site.dir / "other", site.shelf}).generation == 1);
  site.check_installed();
}

TEST_CASE("a whole volume in a second folder is used when the first one is cut short") {
  Discs site;
  fs::copy_file(site.made.volume(1), site.shelf / site.volume_name(1));
  fs::resize_file(site.made.volume(1), 100);
  CHECK_REFUSED(site.apply_with({}), Digest, "cut short");
  site.apply_with({site.shelf});
  site.check_installed();
}

TEST_CASE("a missing volume is asked for by its name and found in the folder that is named") {
  Discs site;
  site.put_on_shelf(2);
  site.apply_with({}, site.answering([&](const bundle::Volume&) { return site.shelf; }));
  CHECK(site.asked == std::vector<std::string>{site.volume_name(2)});
  site.check_installed();
}

TEST_CASE("when nobody has the volume the fault stands, and only what was not finished is read again") {
  Discs site;
  const std::size_t last = site.made.manifest.payload.volumes.size() - 1;
  site.put_on_shelf(last);
  CHECK_REFUSED(site.apply_with({}, site.answering([](const bundle::Volume&) { return std::nullopt; })), Missing,
                site.volume_name(last).string());
  CHECK(!fs::exists(site.prefix().store()));
  std::map<std::string, ino_t> waiting;
  for (const fs::directory_entry& item : fs::directory_iterator(site.prefix().staged_items()))
    waiting[item.path().filename()] = status_of_path(item.path() / "record.json").st_ino;
  CHECK(waiting.size() >= 4);
  site.apply_with({site.shelf});
  for (const auto& [name, inode] : waiting)
    CHECK(status_of_path(site.prefix().store() / name / "record.json").st_ino == inode);
  site.check_installed();
}

TEST_CASE("a bad volume names itself once, and work goes on at the bad chunk when it was replaced") {
  Discs site;
  const std::string good = read_file(site.made.volume(1));
  flip_bit(site.made.volume(1), 8 * 5000);
  std::string what;
  site.apply_with({}, [&](const bundle::Volume& volume, const bundle::Error& fault) -> std::optional<fs::path> {
    site.asked.push_back(volume.name);
    what = fault.what();
    CHECK(open_volumes() == 0);
    fs::remove(site.made.volume(1));
    write_file(site.made.volume(1), good);
    return "";
  });
  CHECK(site.asked == std::vector<std::string>{site.volume_name(1)});
  CHECK(what.find(place_of_chunk(site.made, 1, 5000)) != std::string::npos);
  site.check_installed();
}

TEST_CASE("one drive: each disc is asked for when its turn comes, and no file keeps the last one in") {
  Discs site;
  const std::size_t count = site.made.manifest.payload.volumes.size();
  for (std::size_t i = 0; i < count; ++i) site.put_on_shelf(i);
  const fs::path drive = site.dir / "drive";
  fs::create_directories(drive);
  site.apply_with({drive}, site.answering([&](const bundle::Volume& volume) {
    CHECK(open_volumes() == 0);
    for (const fs::directory_entry& disc : fs::directory_iterator(drive))
      fs::rename(disc.path(), site.shelf / disc.path().filename());
    fs::rename(site.shelf / volume.name, drive / volume.name);
    return fs::path();
  }));
  site.check_installed();
  CHECK(site.asked.front() == site.volume_name(0));
  // Once each, and for each entry that two discs share twice more; its directory stands at its end.
  CHECK(site.asked.size() <= 3 * count + 1);
}

TEST_CASE("a disc that is bad every time can be given up, and nothing but staging was touched") {
  Discs site;
  flip_bit(site.made.volume(1), 8 * 5000);
  int asked = 0;
  CHECK_REFUSED(site.apply_with({},
                                [&](const bundle::Volume&, const bundle::Error&) -> std::optional<fs::path> {
                                  return ++asked < 3 ? std::optional<fs::path>("") : std::nullopt;
                                }),
                Digest, "copy " + site.volume_name(1).string() + " again");
  CHECK(asked == 3);
  CHECK(!fs::exists(site.prefix().generations()));
}
