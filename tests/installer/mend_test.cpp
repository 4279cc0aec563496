// SPDX-License-Identifier: Apache-2.0
// A damaged medium becomes whole volumes in another folder, or nothing does: what `verify` says of it, what `mend`
// writes, what `apply` then installs.
#include "installer/mend/mend.hpp"

#include <random>

#include "installer/preflight/verification.hpp"
#include "installer/preflight/volume_check.hpp"
#include "installer/print/mend_report.hpp"
#include "installer/print/verification_report.hpp"
#include "tests/installer/several_volumes.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// A site whose medium is damaged.
struct Scratched : Site {
  MadeBundle made;
  fs::path into = dir / "into";
  std::vector<std::string> whole;  // the volumes as they were made

  explicit Scratched(unsigned percent = 20) : Scratched(several_volumes(percent)) {}
  explicit Scratched(const TinyBundle& tiny) : made(make(tiny)) {
    REQUIRE(made.manifest.payload.volumes.size() >= 4);
    for (std::size_t i = 0; i < made.manifest.payload.volumes.size(); ++i) whole.push_back(read_file(made.volume(i)));
  }
  fs::path folder() const { return into / made.manifest.stem(); }
  bundle::RecoveryLayout layout() const { return {made.manifest.payload, *made.manifest.payload.recovery}; }

  Mended mend(Disk& disk, const std::vector<fs::path>& more = {}) const {
    bundle::Progress silent(nullptr);
    bundle::OpenBundle opened = bundle::open(made.folder);
    opened.more_folders = more;
    return installer::mend(std::move(opened), into, made.trusted, kNow, 2, disk, silent);
  }
  Mended mend(const std::vector<fs::path>& more = {}) const {
    Disk disk;
    return mend(disk, more);
  }
  Verification verify(const std::vector<fs::path>& more = {}) const {
    bundle::Progress silent(nullptr);
    bundle::OpenBundle opened = bundle::open(made.folder);
    opened.more_folders = more;
    return verify_every_byte(opened, made.trusted, kNow, 2, silent);
  }
  // The bytes of piece `piece` on the medium.
  void scratch_piece(std::uint64_t piece) const {
    const bundle::ChunkLayout chunks(made.manifest.payload);
    std::uint64_t at = chunks.begin_of(layout().first_chunk(piece));
    std::size_t volume = 0;
    while (at >= whole[volume].size()) at -= whole[volume++].size();
    flip_bit(made.volume(volume), 8 * at);
  }
  void check_mended(const Mended& mended, const std::vector<std::size_t>& volumes) const {
    std::vector<std::string> names;
    for (const std::size_t volume : volumes) {
      names.push_back(made.volume(volume).filename().string());
      CHECK(read_file(folder() / names.back()) == whole[volume]);
    }
    CHECK(mended.volumes == names);
    CHECK(mended.folder == folder());
    // Volumes, seal and lists, and nothing else; nothing beside the folder.
    CHECK(std::distance(fs::directory_iterator(folder()), {}) ==
          static_cast<std::ptrdiff_t>(names.size() + (made.manifest.payload.recovery ? 3 : 2)));
    CHECK(std::distance(fs::directory_iterator(into), {}) == 1);
  }
  void check_nothing_written() const { CHECK((!fs::exists(into) || fs::is_empty(into))); }
  void check_installed() const {
    for (unsigned i = 0; i < 6; ++i)
      CHECK(read_file(site_packages() / ("w" + std::to_string(i)) / "numbers.py") == numbers_text(i, 2000));
  }
};

}  // namespace

TEST_CASE("scratches all over a medium are mended into a folder that apply installs from") {
  const Scratched site;
  for (std::uint64_t group = 0; group < site.layout().groups(); ++group)
    for (std::uint64_t i = 0; i < site.layout().parity(); ++i) site.scratch_piece(site.layout().piece_at(group, i * 2));
  const Verification verification = site.verify();
  CHECK(!verification.failures.empty());
  REQUIRE(verification.damage);
  CHECK(verification.damage->mendable());
  CHECK((json_of(verification)["recovery"]["mendable"] == true));
  const Mended mended = site.mend();
  CHECK(!mended.volumes.empty());
  CHECK(text_of(mended).find("apply " + site.folder().string() + " --volumes") != std::string::npos);
  CHECK((json_of(mended)["damage"]["bad_chunks"] == verification.damage->bad_chunks));
  ApplyOptions options = site.options(site.made);
  options.bundle = site.folder();
  options.volumes = {site.made.folder};
  CHECK(site.apply(options).mended.empty());
  site.check_installed();
}

TEST_CASE("flipped bits, a cut volume, a missing one and one that is too long are each mended byte for byte") {
  const Scratched site(100);
  fs::remove(site.made.volume(0));
  fs::resize_file(site.made.volume(1), site.whole[1].size() / 2);
  flip_bit(site.made.volume(2), 8 * 77);
  fs::resize_file(site.made.volume(3), site.whole[3].size() + 1);
  const Verification verification = site.verify();
  REQUIRE(verification.failures.size() >= 4);
  CHECK(verification.failures[0].code() == bundle::ErrorCode::Missing);
  CHECK(verification.damage->bad_volumes.size() == 4);
  site.check_mended(site.mend(), {0, 1, 2, 3});
}

TEST_CASE("a medium that is whole needs no mending, and nothing is written") {
  const Scratched site;
  const Mended mended = site.mend();
  CHECK(mended.volumes.empty());
  CHECK(text_of(mended).find("nothing was written") != std::string::npos);
  site.check_nothing_written();
  CHECK(site.verify().failures.empty());
  CHECK(text_of(site.verify()).find("recovery chunks are here and right") != std::string::npos);
}

TEST_CASE("damage that cannot be mended is refused with what is missing, and nothing is written") {
  const Scratched site;
  for (std::uint64_t i = 0; i <= site.layout().parity(); ++i) site.scratch_piece(site.layout().piece_at(0, i));
  CHECK_REFUSED(site.mend(), Digest, "lack 1 chunks more");
  CHECK_REFUSED(site.mend(), Digest, site.made.volume(0).filename().string());
  site.check_nothing_written();
  CHECK(!site.verify().damage->mendable());
}

TEST_CASE("two bad copies of one disc mend each other where their scratches differ, without recovery data too") {
  const Scratched site(0);
  REQUIRE(!site.made.manifest.payload.recovery);
  const fs::path copy = site.dir / "copy";
  fs::create_directories(copy);
  fs::copy_file(site.made.volume(1), copy / site.made.volume(1).filename());
  flip_bit(site.made.volume(1), 0);
  flip_bit(copy / site.made.volume(1).filename(), 8 * (site.whole[1].size() - 1));
  CHECK_REFUSED(site.mend(), Digest, "or another copy of what is bad");
  CHECK(!site.verify({copy}).failures.empty());
  const Mended mended = site.mend({copy});
  CHECK(mended.damage.bad_chunks == 0);
  site.check_mended(mended, {1});
}

TEST_CASE("recovery data that was signed but is of other bytes mends nothing") {
  Scratched site;
  const bundle::RecoveryLayout layout = site.layout();
  // As a signer who lies, or whose packer is broken, would make it.
  std::vector<bundle::Digest> list;
  for (std::size_t i = 0; i < site.made.manifest.payload.recovery->files.size(); ++i) {
    std::string bytes(read_file(site.made.recovery(i)).size(), 'x');
    write_file(site.made.recovery(i), bytes);
    for (std::uint64_t at = 0; at < bytes.size(); at += layout.piece_size())
      list.push_back(bundle::sha256(bundle::as_bytes(bytes).subspan(at, layout.piece_size())));
  }
  const bundle::ByteView digests = std::as_bytes(std::span(list));
  write_file(site.made.recovery_list(), std::string(bundle::as_text(digests)));
  site.made.manifest.payload.recovery->list_digest = bundle::sha256(digests);
  reseal(site.made, {one_key_root(site.key)}, {&site.key});
  CHECK(site.verify().failures.empty());  // of a whole payload nobody asks it
  site.scratch_piece(0);
  CHECK_REFUSED(site.mend(), Digest, "recovery data does not give what was signed");
  site.check_nothing_written();
}

TEST_CASE("damaged recovery data is told, helps as far as it is right, and hinders nobody who does not need it") {
  const Scratched site;
  const std::uint64_t last = fs::file_size(site.made.recovery(0)) - 1;
  flip_bit(site.made.recovery(0), 8 * last);
  Verification verification = site.verify();
  REQUIRE(verification.failures.size() == 1);
  CHECK(std::string(verification.failures[0].what()).find("recovery chunk") != std::string::npos);
  CHECK(verification.damage->verdict() == "");
  CHECK(verification.damage->recovery_there == verification.damage->recovery_chunks - 1);
  site.apply(site.made);
  site.check_installed();

  bundle::Progress silent(nullptr);
  const auto alone = [&](const fs::path& file) {
    return check_volume(bundle::open(site.made.folder), file, site.made.trusted, kNow, 2, silent);
  };
  const VolumeCheck check = alone(site.made.recovery(0));
  CHECK(check.recovery);
  REQUIRE(check.bad.size() == 1);
  CHECK(check.bad[0].chunks == 1);
  CHECK(check.bad[0].entries.empty());
  CHECK(check.bad[0].offset + check.bad[0].size == last + 1);
  CHECK(std::string(check.bad[0].fault.what()).find("recovery chunk") != std::string::npos);
  flip_bit(site.made.recovery(0), 8 * last);
  CHECK(alone(site.made.recovery(0)).failures().empty());
  flip_bit(site.made.recovery_list(), 5);
  CHECK_REFUSED(alone(site.made.recovery(0)), Digest, "the list of recovery chunks differs");
}

TEST_CASE("a folder that stands is not replaced, and a disk that is full at any moment leaves nothing") {
  const Scratched site;
  site.scratch_piece(1);
  fs::create_directories(site.folder());
  CHECK_REFUSED(site.mend(), Conflict, site.folder().string());
  fs::remove(site.folder());
  SmallDisk small({.bytes = 1000, .inodes = 1000});
  CHECK_REFUSED(site.mend(small), Space, "not enough room");
  for (const std::uint64_t bytes : {0u, 100u, 5000u, 12'000u}) {
    CAPTURE(bytes);
    FullDisk full(bytes);
    CHECK_REFUSED(site.mend(full), Space, "");
    site.check_nothing_written();
  }
  CHECK(site.mend().volumes.size() == 1);
}

TEST_CASE("seeded damage of every kind at once comes back whole, or nothing is written") {
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Scratched site(10 + seed * 7);
    const std::size_t volumes = site.whole.size();
    for (std::uint32_t i = 0; i < 1 + seed / 3; ++i) {
      const std::size_t volume = random() % volumes;
      std::error_code none;
      const std::uint64_t size = fs::file_size(site.made.volume(volume), none);
      if (none || size == 0) continue;
      switch (random() % 6) {
        case 0:
          fs::remove(site.made.volume(volume));
          break;
        case 1:
          fs::resize_file(site.made.volume(volume), random() % size);
          break;
        case 2:
          flip_bit(site.made.recovery(0), random() % (8 * fs::file_size(site.made.recovery(0))));
          break;
        default:
          flip_bit(site.made.volume(volume), random() % (8 * size));
      }
    }
    const bool mendable = site.verify().damage->mendable();
    try {
      const Mended mended = site.mend();
      CHECK(mendable);
      for (std::size_t volume = 0; volume < volumes; ++volume) {
        const fs::path name = site.made.volume(volume).filename();
        const bool in_new = fs::exists(site.folder() / name);
        CHECK(read_file((in_new ? site.folder() : site.made.folder) / name) == site.whole[volume]);
      }
    } catch (const bundle::Error& error) {
      INFO(error.what());
      CHECK(!mendable);
      site.check_nothing_written();
    }
  }
}

namespace {

// Runs `rival` once, when a file of this name is about to be written.
class RewrittenMedium final : public Disk {
 public:
  RewrittenMedium(std::string name, std::function<void()> rival) : name_(std::move(name)), rival_(std::move(rival)) {}
  bundle::Descriptor create(const fs::path& path, mode_t mode) override {
    if (path.filename() == name_ && rival_) std::exchange(rival_, nullptr)();
    return Disk::create(path, mode);
  }

 private:
  std::string name_;
  std::function<void()> rival_;
};

}  // namespace

TEST_CASE("a program that the medium changes while it is mended gets no name beside the volumes") {
  const std::string program = "#!/bin/sh\n";
  TinyBundle tiny = several_volumes(20);
  tiny.companions = {{.name = "tool", .size = program.size(), .sha256 = bundle::sha256(bundle::as_bytes(program))}};
  Scratched site(tiny);
  write_file(site.made.folder / "tool", program);
  flip_bit(site.made.volume(1), 800);
  RewrittenMedium disk("tool", [&] { write_file(site.made.folder / "tool", "#!/bin/no\n"); });
  CHECK_REFUSED(site.mend(disk), Digest, "a program beside the bundle differs from what was signed");
  site.check_nothing_written();
  write_file(site.made.folder / "tool", program);
  CHECK(site.mend().volumes.size() == 1);
  CHECK(read_file(site.folder() / "tool") == program);
}
