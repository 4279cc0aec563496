// SPDX-License-Identifier: Apache-2.0
// A bundle on several discs: in several folders, one after the other in one drive, missing, bad, and replaced.
#include "installer/preflight/volume_check.hpp"
#include "tests/installer/several_volumes.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// A site whose bundle has its volumes elsewhere, and somebody who brings them.
struct Discs : Site {
  MadeBundle made = make(several_volumes());
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

VolumeCheck check_alone(const MadeBundle& made, const fs::path& file) {
  bundle::Progress silent(nullptr);
  return check_volume(bundle::open(made.folder), file, made.trusted, kNow, 3, silent);
}

// The paths of carried entries with bytes in this range of a volume.
std::vector<std::string> entries_in(const MadeBundle& made, std::size_t volume, std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i < volume; ++i)
    from += made.manifest.payload.volumes[i].size, to += made.manifest.payload.volumes[i].size;
  std::map<std::uint64_t, std::string> found;
  for (const bundle::Entry& entry : made.manifest.entries)
    if (entry.offset < to && entry.offset + entry.stored_size > from) found[entry.offset] = entry.path.text();
  std::vector<std::string> paths;
  for (const auto& [offset, path] : found) paths.push_back(path);
  return paths;
}

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

TEST_CASE("a volume that nobody has is a fault, and only what was not finished is read again") {
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

TEST_CASE("one volume is checked alone: without the others, in a folder of its own, whatever the others are") {
  Discs site;
  site.put_on_shelf(2);
  for (std::size_t i = 0; i < site.made.manifest.payload.volumes.size(); ++i)
    if (i == 0)
      fs::resize_file(site.made.volume(i), 1);
    else if (i != 2)
      fs::remove(site.made.volume(i));
  const VolumeCheck check = check_alone(site.made, site.shelf / site.volume_name(2));
  CHECK(check.failures().empty());
  CHECK(check.number == 3);
  CHECK(check.volumes == site.made.manifest.payload.volumes.size());
  CHECK(check.bytes == fs::file_size(site.shelf / site.volume_name(2)));
  CHECK(check.identity == bundle::sha256(bundle::as_bytes(bundle::write_manifest(site.made.manifest))));
  CHECK(!fs::exists(site.prefix().folder()));
}

TEST_CASE("a flipped byte names its chunk's bytes in the volume and the entries they are of, and no others") {
  Discs site;
  const bundle::ChunkLayout layout(site.made.manifest.payload);
  const std::uint64_t begin = site.made.manifest.payload.volumes[0].size;  // of volume 2 in the payload
  std::set<std::string> seen;
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{5000}, std::uint64_t{9000}}) {
    flip_bit(site.made.volume(1), 8 * at);
    const VolumeCheck check = check_alone(site.made, site.made.volume(1));
    REQUIRE(check.bad.size() == 1);
    const BadRange& bad = check.bad[0];
    CHECK(bad.first_chunk == layout.at(begin + at));
    CHECK(bad.chunks == 1);
    CHECK(bad.offset == layout.begin_of(bad.first_chunk) - begin);
    CHECK(bad.size == layout.size_of(bad.first_chunk));
    CHECK(bad.entries == entries_in(site.made, 1, bad.offset, bad.offset + bad.size));
    seen.insert(bad.entries.begin(), bad.entries.end());
    CHECK(bad.fault.code() == bundle::ErrorCode::Digest);
    CHECK(std::string(bad.fault.what()).find("copy " + site.volume_name(1).string() + " again") != std::string::npos);
    flip_bit(site.made.volume(1), 8 * at);
  }
  CHECK(!seen.empty());
  CHECK(check_alone(site.made, site.made.volume(1)).failures().empty());
}

TEST_CASE("neighbouring bad chunks are one range, and a good one between two makes them two") {
  Discs site;
  const bundle::ChunkLayout layout(site.made.manifest.payload);
  const auto flip_chunk = [&](std::uint64_t index) { flip_bit(site.made.volume(0), 8 * layout.begin_of(index)); };
  flip_chunk(0), flip_chunk(1), flip_chunk(3);
  const VolumeCheck check = check_alone(site.made, site.made.volume(0));
  REQUIRE(check.bad.size() == 2);
  CHECK(check.bad[0].offset == 0);
  CHECK(check.bad[0].size == layout.begin_of(2));
  CHECK(check.bad[1].first_chunk == 3);
  CHECK(check.failures().size() == 2);
}

TEST_CASE("a cut volume tells which of its bytes are there and right, a too long one that it is too long") {
  Discs site;
  const std::uint64_t whole = fs::file_size(site.made.volume(1));
  fs::resize_file(site.made.volume(1), whole / 2);
  flip_bit(site.made.volume(1), 0);
  const VolumeCheck cut = check_alone(site.made, site.made.volume(1));
  REQUIRE(cut.wrong_size);
  REQUIRE(cut.bad.size() == 2);
  CHECK(cut.bad[0].offset == 0);
  CHECK(cut.bad[1].offset <= whole / 2);
  CHECK(cut.bad[1].offset + cut.bad[1].size == whole);
  CHECK(cut.bad[1].entries == entries_in(site.made, 1, cut.bad[1].offset, whole));
  CHECK(std::string(cut.bad[1].fault.what()).find("cut off") != std::string::npos);
  CHECK(cut.failures().size() == 3);

  fs::resize_file(site.made.volume(2), fs::file_size(site.made.volume(2)) + 1);
  const VolumeCheck longer = check_alone(site.made, site.made.volume(2));
  CHECK(longer.bad.empty());
  REQUIRE(longer.failures().size() == 1);
  CHECK(longer.failures()[0].code() == bundle::ErrorCode::Digest);
}

TEST_CASE("a volume of another bundle is refused by its name, or bad from its first byte to its last") {
  Discs site;
  TinyBundle next = several_volumes();
  next.version = 2;
  const MadeBundle other = site.make(next, "other");
  CHECK_REFUSED(check_alone(site.made, other.volume(1)), Conflict, other.volume(1).filename().string());
  const fs::path disguised = site.shelf / site.volume_name(1);
  std::string strange(fs::file_size(site.made.volume(1)), 'x');
  write_file(disguised, strange);
  const VolumeCheck check = check_alone(site.made, disguised);
  REQUIRE(check.bad.size() == 1);
  CHECK(check.bad[0].offset == 0);
  CHECK(check.bad[0].size == strange.size());
  CHECK(check.bad[0].chunks == check.chunks);
}

TEST_CASE("no volume is good under an unsigned manifest or another chunk list, and only a plain file is a volume") {
  Discs site;
  fs::create_symlink(site.made.volume(1), site.shelf / site.volume_name(1));
  CHECK_REFUSED(check_alone(site.made, site.shelf / site.volume_name(1)), Format, site.volume_name(1).string());
  fs::create_directories(site.shelf / site.volume_name(2));
  CHECK_REFUSED(check_alone(site.made, site.shelf / site.volume_name(2)), Format, site.volume_name(2).string());
  CHECK_REFUSED(check_alone(site.made, site.shelf / site.volume_name(0)), Missing, site.volume_name(0).string());
  flip_bit(site.made.chunks(), 0);
  CHECK_REFUSED(check_alone(site.made, site.made.volume(1)), Digest, "chunk list");
  flip_bit(site.made.chunks(), 0);
  const bundle::PrivateKey stranger = bundle::PrivateKey::generate();
  reseal(site.made, {one_key_root(site.key)}, {&stranger});
  CHECK_REFUSED(check_alone(site.made, site.made.volume(1)), Signature, "");
  reseal(site.made, {one_key_root(site.key)}, {});
  CHECK_REFUSED(check_alone(site.made, site.made.volume(1)), Signature, "");
}
