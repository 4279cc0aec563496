// SPDX-License-Identifier: Apache-2.0
// Volumes for media, and cutting again: the payload stays, the cut and its signature change.
#include "packager/pack/recut.hpp"

#include <doctest/doctest.h>

#include <map>

#include "packager/host/process.hpp"
#include "packager/pack/volume_size.hpp"
#include "sealift/bundle/verified_bundle.hpp"
#include "tests/support/refusal.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift;
using namespace sealift::packager;
using namespace sealift::test;
namespace fs = std::filesystem;

namespace {

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

// A bundle of one volume and some ten chunks, with an installer beside it.
struct Medium {
  TempDir dir;
  bundle::PrivateKey key = bundle::PrivateKey::generate();
  bundle::Progress progress{nullptr};
  MadeBundle made;

  explicit Medium(unsigned recovery = 0) {
    std::string noise(40'000, '\0');
    unsigned seed = 7;
    for (char& byte : noise) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
    TinyBundle tiny;
    tiny.recovery = recovery;
    tiny.items.push_back({.path = "data/noise", .bytes = noise, .into = "noise"});
    made = make_bundle(dir / "tiny-1", tiny, key);
    write_file(made.folder / "sealift-install", "#!/bin/sh\n");
    made.manifest.companions = {
        {.name = "sealift-install", .size = 10, .sha256 = bundle::sha256(bundle::as_bytes("#!/bin/sh\n"))}};
    reseal(made, {one_key_root(key)}, {&key});
    bundle::write_text(dir / "release.key", key.pem(), 0600);
  }
  RecutOptions options(const std::string& out, std::uint64_t volume_size) const {
    return {.bundle = made.folder,
            .fingerprint = *made.trusted.state.pinned,
            .keys = {dir / "release.key"},
            .passphrase = {},
            .out = dir / out,
            .volume_size = volume_size};
  }
  RecutResult cut(const std::string& out, std::uint64_t volume_size) {
    return recut(options(out, volume_size), progress);
  }
};

}  // namespace

TEST_CASE("cutting again changes the volumes and the seal, and cutting back gives every byte of the first bundle") {
  Medium medium;
  const RecutResult cut = medium.cut("discs", 3 * 4096 + 100);
  CHECK(cut.folder == medium.dir / "discs/tiny-1");
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(cut.folder), medium.made.trusted, bundle::system_time());
  CHECK(bundle::check_every_chunk(verified, 2).empty());
  CHECK(verified.manifest() == cut.manifest);
  REQUIRE(cut.manifest.payload.volumes.size() > 2);
  CHECK(cut.manifest.payload.volumes[0].size == 3 * 4096);
  bundle::Manifest same_but_the_cut = cut.manifest;
  same_but_the_cut.payload.volumes = medium.made.manifest.payload.volumes;
  CHECK(same_but_the_cut == medium.made.manifest);
  CHECK(text_of(cut.roles) == "release 1 of 1");
  std::string joined;
  for (const bundle::Volume& volume : cut.manifest.payload.volumes) joined += read_file(cut.folder / volume.name);
  CHECK(joined == read_file(medium.made.volume(0)));

  RecutOptions back = medium.options("back", 0);
  back.bundle = cut.folder;
  recut(back, medium.progress);
  CHECK(files_of(medium.dir / "back/tiny-1") == files_of(medium.made.folder));
}

TEST_CASE("recovery data is cut again too, the same bytes in other files, also where it was left at home") {
  Medium medium(30);
  const std::string before = read_file(medium.made.recovery(0));
  const fs::path aside = medium.dir / "aside";
  fs::rename(medium.made.recovery(0), aside);
  const RecutResult cut = medium.cut("discs", 8192);
  const bundle::VerifiedBundle verified =
      bundle::verify(bundle::open(cut.folder), medium.made.trusted, bundle::system_time());
  REQUIRE(verified.manifest().payload.recovery);
  const bundle::Recovery &was = *medium.made.manifest.payload.recovery, &is = *verified.manifest().payload.recovery;
  CHECK(is.list_digest == was.list_digest);
  REQUIRE(is.files.size() > 1);
  std::string joined;
  for (const bundle::Volume& file : is.files) joined += read_file(cut.folder / file.name);
  CHECK(joined == before);
  fs::rename(aside, medium.made.recovery(0));
  RecutOptions back = medium.options("back", 0);
  back.bundle = cut.folder;
  recut(back, medium.progress);
  CHECK(files_of(medium.dir / "back/tiny-1") == files_of(medium.made.folder));
}

TEST_CASE("a share of the payload is a whole percentage") {
  CHECK(parse_percent("5%") == 5);
  CHECK(parse_percent("100") == 100);
  for (const char* wrong : {"", "%", "0", "0%", "101%", "5 %", "5%%", "-1", "1.5%", "many", "4294967297"}) {
    CAPTURE(wrong);
    CHECK_REFUSED(parse_percent(wrong), Usage, "1% to 100%");
  }
}

TEST_CASE("a site that has taken in one cut of a bundle takes another cut for another content under the same version") {
  Medium medium;
  const RecutResult cut = medium.cut("discs", 8192);
  const bundle::VerifiedBundle first =
      bundle::verify(bundle::open(medium.made.folder), medium.made.trusted, bundle::system_time());
  CHECK_REFUSED(bundle::verify(bundle::open(cut.folder), {.state = first.trust()}, bundle::system_time()), Equivocation,
                "tiny");
}

TEST_CASE("a cut of a bundle whose root asks for two signatures says how many it has") {
  Medium medium;
  const bundle::PrivateKey other = bundle::PrivateKey::generate();
  bundle::Root root = make_root({&medium.key}, {&medium.key, &other});
  root.roles["release"].threshold = 2;
  const bundle::Envelope signed_one = signed_root(root, {&medium.key});
  reseal(medium.made, {signed_one}, {&medium.key, &other});
  medium.made.trusted = pinned(signed_one);
  CHECK(text_of(medium.cut("discs", 8192).roles) == "release 1 of 2");
}

TEST_CASE("an installer that was left out stays left out, and one that was exchanged is not carried on") {
  Medium medium;
  CHECK(read_file(medium.cut("with", 8192).folder / "sealift-install") == "#!/bin/sh\n");
  write_file(medium.made.folder / "sealift-install", "#!/bin/bad");
  CHECK_REFUSED(medium.cut("bad", 8192), Digest, "sealift-install");
  fs::remove(medium.made.folder / "sealift-install");
  CHECK_FALSE(fs::exists(medium.cut("without", 8192).folder / "sealift-install"));
}

TEST_CASE("a recut bundle that cannot be vouched for is not signed, and nothing is left behind") {
  Medium medium;
  SUBCASE("a bundle of another root, though it names our key") {
    RecutOptions options = medium.options("out", 8192);
    options.fingerprint = bundle::sha256(bundle::as_bytes("another root"));
    CHECK_REFUSED(recut(options, medium.progress), Signature, "not among the bundle's roots");
  }
  SUBCASE("a key that may not sign bundles") {
    bundle::write_text(medium.dir / "other.key", bundle::PrivateKey::generate().pem(), 0600);
    RecutOptions options = medium.options("out", 8192);
    options.keys = {medium.dir / "other.key"};
    CHECK_REFUSED(recut(options, medium.progress), Usage, "may not sign bundles");
  }
  SUBCASE("a damaged chunk") {
    std::string bytes = read_file(medium.made.volume(0));
    bytes[5 * 4096 + 17] = static_cast<char>(bytes[5 * 4096 + 17] ^ 1);
    write_file(medium.made.volume(0), bytes);
    CHECK_REFUSED(medium.cut("out", 8192), Digest, "chunk 5");
  }
  SUBCASE("volumes smaller than a chunk") {
    CHECK_REFUSED(medium.cut("out", 4095), Usage, "smaller than a chunk");
  }
  SUBCASE("a bundle that is there already") {
    write_file(medium.dir / "out/tiny-1/keep", "me");
    CHECK_REFUSED(medium.cut("out", 8192), Conflict, "tiny-1");
    CHECK(files_of(medium.dir / "out/tiny-1").size() == 1);
    fs::remove_all(medium.dir / "out/tiny-1");
  }
  CHECK_FALSE(fs::exists(medium.dir / "out/tiny-1"));
  CHECK_FALSE(fs::exists(medium.dir / "out/.tiny-1.partial"));
}

TEST_CASE("a medium's name is the size of volumes that fit it, with room for what travels beside them") {
  CHECK(parse_volume_size("fat32") == 4'294'967'295);
  CHECK(parse_volume_size("dvd") == 4'700'372'992 - 67'108'864);
  CHECK(parse_volume_size("dvd-dl") == 8'543'666'176 - 67'108'864);
  CHECK(parse_volume_size("bd") == 25'025'314'816 - 67'108'864);
  CHECK(parse_volume_size("cd") == 737'280'000 - 67'108'864);
  CHECK(parse_volume_size("4G") == std::uint64_t{4} << 30);
  CHECK(parse_volume_size("0") == 0);
  CHECK_REFUSED(parse_volume_size("floppy"), Usage, "cd, dvd, dvd-dl, bd, fat32");
  CHECK_REFUSED(parse_volume_size("DVD"), Usage, "dvd");
}

TEST_CASE("sealift-pack recut prints the new folder") {
  Medium medium;
  const ProcessResult result = run_process({SEALIFT_PACK, "recut", medium.made.folder.string(), "--volume-size", "8K",
                                            "--key", (medium.dir / "release.key").string(), "--fingerprint",
                                            medium.made.fingerprint(), "-o", (medium.dir / "out").string()});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == (medium.dir / "out/tiny-1").string() + "\n");
  CHECK(result.err.find("release 1 of 1") != std::string::npos);
}
