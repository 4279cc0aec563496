// SPDX-License-Identifier: Apache-2.0
// A damaged medium with recovery data: `apply` and `export` mend what they read, and say which disc to replace; what is
// too much is refused with the command that mends it, and nothing is installed.
#include <random>

#include "installer/export/export_bundle.hpp"
#include "installer/generations/receipt.hpp"
#include "installer/host/mending.hpp"
#include "installer/print/apply_report.hpp"
#include "installer/print/export_report.hpp"
#include "tests/installer/several_volumes.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;

namespace {

// A site whose medium is about to be damaged.
struct DamagedSite : Site {
  MadeBundle made;

  explicit DamagedSite(unsigned percent = 20) : made(make(several_volumes(percent))) {
    REQUIRE(made.manifest.payload.volumes.size() >= 4);
  }
  bundle::RecoveryLayout layout() const { return {made.manifest.payload, *made.manifest.payload.recovery}; }
  std::string name(std::size_t volume) const { return made.volume(volume).filename().string(); }
  // Changes the byte at this offset of the payload; in which volume that is.
  std::size_t scratch(std::uint64_t at) const {
    std::size_t volume = 0;
    while (at >= made.manifest.payload.volumes[volume].size) at -= made.manifest.payload.volumes[volume++].size;
    flip_bit(made.volume(volume), 8 * at);
    return volume;
  }
  void scratch_piece(std::uint64_t piece) const {
    scratch(bundle::ChunkLayout(made.manifest.payload).begin_of(layout().first_chunk(piece)));
  }
  void zero_sector(std::size_t volume, std::uint64_t sector) const {
    std::fstream file(made.volume(volume), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(2048 * sector)) << std::string(2048, '\0');
  }
  std::vector<std::string> names_of(const std::vector<bundle::MendedVolume>& mended) const {
    std::vector<std::string> names;
    for (const bundle::MendedVolume& volume : mended) names.push_back(volume.name);
    return names;
  }
  // Applies it; each byte is right, and these volumes are named.
  Applied check_apply(const std::vector<std::size_t>& volumes) const {
    const Applied applied = apply(made);
    std::vector<std::string> names;
    for (const std::size_t volume : volumes) names.push_back(name(volume));
    CHECK(names_of(applied.mended) == names);
    CHECK(applied.chunks_read == applied.chunks);
    for (unsigned i = 0; i < kSeveralWheels; ++i)
      CHECK(read_file(site_packages() / ("w" + std::to_string(i)) / "numbers.py") == numbers_text(i, 2000));
    return applied;
  }
  void check_not_installed() const { CHECK(!fs::exists(fs::symlink_status(current()))); }
};

// The words of the refusal.
template <class Act>
std::string refusal_of(const Act& act) {
  try {
    act();
  } catch (const bundle::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("apply mends scratches while it reads, and output, receipt and record name the discs to replace") {
  for (const unsigned threads : {1u, 4u}) {
    CAPTURE(threads);
    DamagedSite site;
    site.threads = threads;
    flip_bit(site.made.volume(1), 8 * 77);
    site.zero_sector(2, 1);
    const Applied applied = site.check_apply({1, 2});
    CHECK(applied.mended[0].chunks == 1);
    CHECK(applied.mended[0].bytes != 0);
    REQUIRE(applied.record);
    CHECK(applied.record->mended == applied.mended);
    const ApplyOptions options = site.options(site.made);
    CHECK(text_of(applied, options).find("of " + site.name(1)) != std::string::npos);
    CHECK((json_of(applied, options)["mended"][1]["name"] == site.name(2)));
    const GenerationRecord record = record_for_receipt(site.prefix(), 0);
    CHECK(record.mended == applied.mended);
    CHECK(receipt_page(record).find(site.name(2)) != std::string::npos);
  }
}

TEST_CASE("a volume that is cut short, one that is too long and one that is missing are read through as well") {
  DamagedSite site(100);
  fs::resize_file(site.made.volume(1), fs::file_size(site.made.volume(1)) / 2);
  fs::resize_file(site.made.volume(2), fs::file_size(site.made.volume(2)) + 1);
  fs::remove(site.made.volume(3));
  const Applied applied = site.check_apply({1, 2, 3});
  CHECK(applied.mended[0].bytes < site.made.manifest.payload.volumes[1].size);  // its beginning was not mended
  CHECK(applied.mended[2].bytes == site.made.manifest.payload.volumes[3].size);
}

TEST_CASE("a medium that is whole is not mended, and its record says nothing of it") {
  const DamagedSite site;
  fs::remove(site.made.recovery(0));  // left at home
  const Applied applied = site.check_apply({});
  CHECK(write_generation_record(*applied.record).find("mended") == std::string::npos);
  CHECK(text_of(applied, site.options(site.made)).find("mended") == std::string::npos);
}

TEST_CASE("another copy of a volume gives what is damaged in the first") {
  const DamagedSite site(1);
  const fs::path copy = site.dir / "copy";
  fs::create_directories(copy);
  fs::copy_file(site.made.volume(1), copy / site.made.volume(1).filename());
  for (std::uint64_t at = 0; at < fs::file_size(site.made.volume(1)); at += 4096) flip_bit(site.made.volume(1), 8 * at);
  CHECK_REFUSED(site.apply(site.made), Digest, "more is lost than recovery data mends");
  site.check_not_installed();
  ApplyOptions options = site.options(site.made);
  options.volumes = {copy};
  CHECK(site.names_of(site.apply(options).mended) == std::vector<std::string>{site.name(1)});
}

TEST_CASE("more than recovery data mends is refused with the command to run and what is missing, and not installed") {
  const DamagedSite site;
  for (std::uint64_t i = 0; i <= site.layout().parity(); ++i) site.scratch_piece(site.layout().piece_at(0, i));
  ApplyOptions options = site.options(site.made);
  options.volumes = {site.dir / "disc two"};
  const std::string refusal = refusal_of([&] { site.apply(options); });
  INFO(refusal);
  CHECK(refusal.find("sealift-install mend " + site.made.folder.string() + " --volumes '" +
                     (site.dir / "disc two").string() + "' --prefix " + site.prefix().folder().string()) !=
        std::string::npos);
  CHECK(refusal.find("--fingerprint " + site.made.fingerprint() + " --into FOLDER") != std::string::npos);
  CHECK(refusal.find("not mended while it was read: more is lost than recovery data mends") != std::string::npos);
  site.check_not_installed();
}

TEST_CASE("recovery data that was left at home mends nothing, and the refusal says how to use it") {
  const DamagedSite site;
  for (std::size_t i = 0; i < site.made.manifest.payload.recovery->files.size(); ++i) fs::remove(site.made.recovery(i));
  flip_bit(site.made.volume(1), 8 * 77);
  CHECK_REFUSED(site.apply(site.made), Digest, "sealift-install mend " + site.made.folder.string());
  CHECK_REFUSED(site.apply(site.made), Digest, "at most 0 lost pieces");
  fs::remove(site.made.volume(2));
  CHECK_REFUSED(site.apply(site.made), Missing, "sealift-install mend " + site.made.folder.string());
  site.check_not_installed();
}

TEST_CASE("recovery data that is damaged itself helps as far as it is right") {
  const DamagedSite site;
  flip_bit(site.made.recovery_list(), 5);
  flip_bit(site.made.volume(1), 8 * 77);
  CHECK_REFUSED(site.apply(site.made), Digest, "the list of recovery chunks differs from what was signed");
  flip_bit(site.made.recovery_list(), 5);
  flip_bit(site.made.recovery(0), 5);  // one chunk of one group
  REQUIRE(site.layout().parity() >= 2);
  site.check_apply({1});
}

TEST_CASE("recovery data that was signed but is of other bytes is told while it mends, and nothing is installed") {
  DamagedSite site;
  const bundle::RecoveryLayout layout = site.layout();
  std::vector<bundle::Digest> list;
  for (std::size_t i = 0; i < site.made.manifest.payload.recovery->files.size(); ++i) {
    const std::string bytes(read_file(site.made.recovery(i)).size(), 'x');
    write_file(site.made.recovery(i), bytes);
    for (std::uint64_t at = 0; at < bytes.size(); at += layout.piece_size())
      list.push_back(bundle::sha256(bundle::as_bytes(bytes).subspan(at, layout.piece_size())));
  }
  const bundle::ByteView digests = std::as_bytes(std::span(list));
  write_file(site.made.recovery_list(), std::string(bundle::as_text(digests)));
  site.made.manifest.payload.recovery->list_digest = bundle::sha256(digests);
  reseal(site.made, {one_key_root(site.key)}, {&site.key});
  site.scratch_piece(0);
  CHECK_REFUSED(site.apply(site.made), Digest, "recovery data does not give what was signed");
  site.check_not_installed();
}

TEST_CASE("damage is mended before anybody is asked, and a missing disc is asked for before it is mended") {
  DamagedSite site(100);
  flip_bit(site.made.volume(1), 8 * 77);
  const fs::path away = site.dir / "away";
  fs::create_directories(away);
  fs::rename(site.made.volume(2), away / site.made.volume(2).filename());
  std::vector<std::string> asked;
  ApplyOptions options = site.options(site.made);
  options.ask = [&](const bundle::Volume& volume, const bundle::Error&) {
    asked.push_back(volume.name);
    return std::optional<fs::path>(away);
  };
  const Applied applied = site.apply(options);
  CHECK(asked == std::vector<std::string>{site.name(2)});
  CHECK(site.names_of(applied.mended) == std::vector<std::string>{site.name(1)});

  DamagedSite other;
  for (std::uint64_t i = 0; i <= other.layout().parity(); ++i) other.scratch_piece(other.layout().piece_at(0, i));
  options = other.options(other.made);
  options.ask = [&](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
  CHECK_REFUSED(other.apply(options), Digest, "more is lost than recovery data mends");
}

TEST_CASE("export mends what it reads, each file has the digest under which it was published, and the disc is named") {
  const DamagedSite site;
  const std::size_t volume = site.scratch(site.made.manifest.entries[3].offset);
  const auto run = [&](bool mend) {
    bundle::OpenBundle opened = bundle::open(site.made.folder);
    if (mend) opened.mending = mending_here(site.made.folder, {}, "");
    bundle::Progress silent(nullptr);
    Disk disk;
    return export_bundle(bundle::verify(opened, site.made.trusted, kNow),
                         {.wheels = site.dir / "out", .models = {}, .debs = {}, .programs = {}}, 2, disk, silent);
  };
  CHECK_REFUSED(run(false), Digest, "differs from what was signed");
  const Exported exported = run(true);
  CHECK(exported.folders[0].written.size() + exported.folders[0].there.size() == kSeveralWheels);
  CHECK(site.names_of(exported.mended) == std::vector<std::string>{site.name(volume)});
  CHECK(text_of(exported).find(site.name(volume)) != std::string::npos);
  CHECK((json_of(exported)["mended"][0]["chunks"] == 1));
}

TEST_CASE("seeded damage is either installed byte for byte, or refused with nothing installed") {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const DamagedSite site(10 + seed * 10);
    for (std::uint32_t i = 0; i < 1 + seed / 2; ++i) {
      const std::size_t volume = random() % site.made.manifest.payload.volumes.size();
      std::error_code none;
      const std::uint64_t size = fs::file_size(site.made.volume(volume), none);
      if (none || size == 0) continue;
      switch (random() % 5) {
        case 0:
          fs::remove(site.made.volume(volume));
          break;
        case 1:
          fs::resize_file(site.made.volume(volume), random() % size);
          break;
        default:
          flip_bit(site.made.volume(volume), random() % (8 * size));
      }
    }
    const bool mendable = [&] {
      bundle::OpenBundle opened = bundle::open(site.made.folder);
      opened.ask = [](const bundle::Volume&, const bundle::Error&) { return std::nullopt; };
      const bundle::VerifiedBundle bundle = bundle::verify(opened, site.made.trusted, kNow);
      return bundle::DamagedPayload(bundle, {site.made.folder}).survey(2).mendable();
    }();
    try {
      site.apply(site.made);
      CHECK(mendable);
      for (unsigned i = 0; i < kSeveralWheels; ++i)
        CHECK(read_file(site.site_packages() / ("w" + std::to_string(i)) / "numbers.py") == numbers_text(i, 2000));
    } catch (const bundle::Error& error) {
      INFO(error.what());
      CHECK(!mendable);
      site.check_not_installed();
    }
  }
}

TEST_CASE("a command to run is spelled so that a shell reads it back") {
  CHECK(mending_here("/media/disc 1/env-7", {"/a", "/it's"}, "--prefix /opt/env").command ==
        "sealift-install mend '/media/disc 1/env-7' --volumes /a '/it'\\''s' --prefix /opt/env --into FOLDER");
  CHECK(shell_option("--prefix", "") == "");
}
