// SPDX-License-Identifier: Apache-2.0
// Every reason not to install: the right code, a message that names the place, and a prefix that is as it was.
#include "installer/apply/apply.hpp"
#include "installer/generations/generation.hpp"
#include "installer/preflight/verification.hpp"
#include "tests/installer/site.hpp"

using namespace sealift;
using namespace sealift::installer;
using namespace sealift::test;
using bundle::Error;
using bundle::ErrorCode;

namespace {

// Three volumes of whole 4 KiB chunks.
TinyBundle in_volumes() {
  TinyBundle tiny{.volume_size = 24576};
  tiny.items = {wheel_item({}), file_item("files/a", numbers_text(1, 1500), "share/a"),
                file_item("files/b", numbers_text(2, 1500), "share/b")};
  return tiny;
}

Verification verify(const MadeBundle& made) {
  bundle::Progress silent(nullptr);
  return verify_every_byte(bundle::open(made.folder), made.trusted, kNow, 2, silent);
}

// What `sealift-install verify` ends with: the refusal, or that of the first bad chunk.
Error verify_refusal(const MadeBundle& made) {
  return refusal([&] {
    for (const Error& failure : verify(made).failures) throw failure;
  });
}

// Refused by verify and by apply with one code; the prefix is not made.
void check_refused_everywhere(const Site& site, const MadeBundle& made, ErrorCode code, const std::string& text) {
  const Error by_verify = verify_refusal(made);
  INFO(by_verify.what());
  CHECK(by_verify.code() == code);
  CHECK(mentions(by_verify, text));
  const Error by_apply = refusal([&] { site.apply(made); });
  INFO(by_apply.what());
  CHECK(by_apply.code() == code);
  CHECK(mentions(by_apply, text));
  CHECK(!fs::exists(site.current()));
  CHECK(generation_numbers(site.prefix()).empty());
}

}  // namespace

TEST_CASE("a flipped bit in the seal or the chunk list is refused before anything is made") {
  const Site site;
  const MadeBundle made = site.make(in_volumes());
  for (const fs::path& file : {made.seal(), made.chunks()}) {
    const std::uint64_t bits = fs::file_size(file) * 8;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint64_t bit = i * 2654435761u % bits;
      flip_bit(file, bit);
      const Error error = refusal([&] { site.apply(made); });
      INFO(error.what());
      CHECK((error.code() == ErrorCode::Format || error.code() == ErrorCode::Signature ||
             error.code() == ErrorCode::Digest || error.code() == ErrorCode::CannotCheck));
      CHECK(mentions(error, file.filename().string()));
      flip_bit(file, bit);
    }
  }
  CHECK(!fs::exists(site.prefix().folder()));
}

TEST_CASE("a flipped bit anywhere in a volume is refused, naming volume and offset") {
  const Site site;
  const MadeBundle made = site.make(in_volumes());
  REQUIRE(made.manifest.payload.volumes.size() == 3);
  for (std::size_t volume = 0; volume < 3; ++volume) {
    const std::uint64_t size = fs::file_size(made.volume(volume));
    for (std::uint64_t i = 0; i < 14; ++i) {
      const std::uint64_t byte = i == 0 ? 0 : i == 1 ? size - 1 : i * 2654435761u % size;
      flip_bit(made.volume(volume), byte * 8 + i % 8);
      const std::string place = place_of_chunk(made, volume, byte);
      check_refused_everywhere(site, made, ErrorCode::Digest, place);
      CHECK(!fs::exists(site.prefix().store()));  // nothing but staging was touched
      CHECK(!fs::exists(site.prefix().generations()));
      std::error_code ignored;
      fs::remove_all(site.prefix().staging(), ignored);  // or the next damage might not have to be read
      flip_bit(made.volume(volume), byte * 8 + i % 8);
    }
  }
}

TEST_CASE("verify lists every bad chunk, not only the first") {
  const Site site;
  const MadeBundle made = site.make(in_volumes());
  flip_bit(made.volume(2), 77);
  flip_bit(made.volume(0), 4096 * 8);
  const Verification result = verify(made);
  REQUIRE(result.failures.size() == 2);
  CHECK(mentions(result.failures[0], "vol001 at offset 4096"));
  CHECK(mentions(result.failures[1], "vol003 at offset 0"));
}

TEST_CASE("a bundle that is whole verifies with what it is") {
  const Site site;
  const MadeBundle made = site.make(in_volumes());
  const Verification result = verify(made);
  CHECK(result.failures.empty());
  CHECK(result.name == "tiny");
  CHECK(result.entries == 3);
  CHECK(result.volumes == 3);
  CHECK(result.bytes == made.manifest.payload.size);
}

TEST_CASE("missing, truncated, longer, extra and swapped volumes are refused by name") {
  Site site;
  site.threads = 1;  // several may come upon another of the wrong chunks first
  const MadeBundle made = site.make(in_volumes());
  const fs::path volume = made.volume(1);
  SUBCASE("missing") {
    fs::remove(volume);
    check_refused_everywhere(site, made, ErrorCode::Missing, volume.filename().string());
  }
  SUBCASE("truncated") {
    fs::resize_file(volume, fs::file_size(volume) - 1);
    check_refused_everywhere(site, made, ErrorCode::Digest, volume.filename().string());
  }
  SUBCASE("longer") {
    fs::resize_file(volume, fs::file_size(volume) + 1);
    check_refused_everywhere(site, made, ErrorCode::Digest, volume.filename().string());
  }
  SUBCASE("extra") {
    write_file(made.folder / "tiny-1.vol004", "more");
    check_refused_everywhere(site, made, ErrorCode::Conflict, "tiny-1.vol004");
  }
  SUBCASE("swapped") {
    fs::rename(volume, made.folder / "aside");
    fs::rename(made.volume(0), volume);
    fs::rename(made.folder / "aside", made.volume(0));
    check_refused_everywhere(site, made, ErrorCode::Digest, "tiny-1.vol001");
  }
  SUBCASE("a link") {
    fs::rename(volume, site.dir / "elsewhere");
    fs::create_symlink(site.dir / "elsewhere", volume);
    check_refused_everywhere(site, made, ErrorCode::Format, volume.filename().string());
  }
  SUBCASE("a missing chunk list") {
    fs::remove(made.chunks());
    check_refused_everywhere(site, made, ErrorCode::Missing, "tiny-1.chunks");
  }
  SUBCASE("a missing seal") {
    fs::remove(made.seal());
    check_refused_everywhere(site, made, ErrorCode::Missing, "no seal");
  }
}

TEST_CASE("a bundle under a root that is not pinned is refused, with both fingerprints") {
  const Site site;
  MadeBundle made = site.make(in_volumes());
  const std::string root = made.fingerprint();
  made.trusted = pinned(one_key_root(bundle::PrivateKey::generate()));
  check_refused_everywhere(site, made, ErrorCode::Signature, root);
  CHECK(mentions(verify_refusal(made), made.fingerprint()));
  made.trusted = {};
  check_refused_everywhere(site, made, ErrorCode::Signature, "no root is pinned");
  CHECK(!fs::exists(site.prefix().folder()));
}

TEST_CASE("a machine with an older C library, none, or another architecture is refused") {
  Site site;
  TinyBundle tiny = in_volumes();
  tiny.glibc = {2, 39};
  const MadeBundle made = site.make(tiny);
  SUBCASE("older") {
    const Error error = refusal([&] { site.apply(made); });
    CHECK(error.code() == ErrorCode::Platform);
    CHECK(error.facts().expected == "glibc 2.39 or newer");
    CHECK(error.facts().got == "glibc 2.36");
  }
  SUBCASE("none") {
    site.machine.target.glibc = {};
    CHECK_REFUSED(site.apply(made), Platform, "no libc.so.6");
  }
  SUBCASE("another architecture") {
    site.machine.target.arch = "aarch64";
    CHECK_REFUSED(site.apply(made), Platform, "aarch64");
  }
  CHECK(!fs::exists(site.prefix().folder()));
  CHECK(verify(made).failures.empty());  // a media desk may check it on any machine
}

TEST_CASE("a prefix whose path no search path could hold is refused before anything is written") {
  Site site;
  for (const char* name : {"env:2", "env\n2"}) {
    ApplyOptions options = site.options(site.make(in_volumes(), std::string("of ") + name[3]));
    options.prefix = Prefix(site.dir / name);
    CHECK_REFUSED(site.apply(options), Usage, name[3] == ':' ? "holds a colon" : "a control character");
    CHECK_REFUSED(site.preflight(options, Disk()), Usage, "the prefix's path holds a");
    CHECK(!fs::exists(site.dir / name));
  }
}

TEST_CASE("where glibc is carried, the machine's own does not matter, but its kernel must be new enough for it") {
  Site site;
  TinyBundle tiny = in_volumes();
  tiny.glibc = {2, 39};
  tiny.runtime = {.glibc = {2, 41}, .kernel = "3.2.0"};
  const MadeBundle made = site.make(tiny);
  CHECK(made.manifest.installer_level == 2);
  SUBCASE("an older kernel") {
    site.machine.target.kernel = "2.6.32-754.el6.x86_64";
    const Error error = refusal([&] { site.apply(made); });
    CHECK(error.code() == ErrorCode::Platform);
    CHECK(error.facts().expected == "3.2.0 or newer");
    CHECK(error.facts().got == "2.6.32-754.el6.x86_64");
    CHECK(!fs::exists(site.prefix().folder()));
  }
  SUBCASE("an older glibc") {
    site.apply(made);
    CHECK(fs::exists(site.prefix().folder()));
  }
  SUBCASE("no glibc at all") {
    site.machine.target.glibc = {};
    site.apply(made);
    CHECK(fs::exists(site.prefix().folder()));
  }
}

TEST_CASE("too little space is known before a byte is written") {
  const Site site;
  TinyBundle tiny = in_volumes();
  tiny.installed_size = std::uint64_t{5} << 30;
  const MadeBundle made = site.make(tiny);
  SmallDisk small({.bytes = std::uint64_t{15} << 30, .inodes = 1'000'000});
  CHECK_REFUSED(site.apply(made, small), Space, std::to_string(std::uint64_t{15} << 30) + " bytes free");
  SmallDisk few({.bytes = std::uint64_t{1} << 50, .inodes = 20});
  CHECK_REFUSED(site.apply(made, few), Space, "20 inodes free");
  CHECK_REFUSED(site.apply(made, small, true), Space, "not enough room");
  CHECK(!fs::exists(site.prefix().folder()));
}

TEST_CASE("a disk that fills up on the way costs nothing but the run, wherever it happens") {
  const Site site;
  TinyBundle next = in_volumes();
  next.version = 2;
  next.items.push_back(file_item("files/c", numbers_text(3, 1500), "share/c"));
  next.items.push_back(wheel_item({.name = "more", .files = {{"more.py", "M = 1\n"}}}));
  site.apply(site.make(in_volumes()));
  const MadeBundle made = site.make(next, "bundle2");
  int refused = 0;
  for (std::uint64_t bytes = 0; bytes < 30'000; bytes += 500) {
    FullDisk full(bytes);
    try {
      site.apply(made, full);
      break;  // now everything fits
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::Space);
      ++refused;
    }
    CHECK(fs::read_symlink(site.current()) == "generations/0001");
    CHECK(generation_numbers(site.prefix()) == std::vector<unsigned>{1});
    std::error_code ignored;
    for (const fs::directory_entry& left : fs::directory_iterator(site.prefix().staging(), ignored))
      CHECK(left.path() == site.prefix().staged_items());
  }
  CHECK(refused > 5);
  CHECK(site.apply(made).generation == 2);
  CHECK(read_file(site.current() / "share/c") == numbers_text(3, 1500));
}

TEST_CASE("a refusal leaves the environment in use as it was") {
  const Site site;
  site.apply(site.make(in_volumes()));
  const auto before = installed(site.prefix().folder());
  TinyBundle next = in_volumes();
  next.version = 2;
  next.volume_size = TinyBundle{}.volume_size;  // one
  next.items.push_back(file_item("files/c", numbers_text(3, 1500), "share/c"));
  const MadeBundle made = site.make(next, "bundle2");
  const auto fresh = std::ranges::find_if(made.manifest.entries,
                                          [](const bundle::Entry& entry) { return entry.path.text() == "files/c"; });
  flip_bit(made.volume(0), 8 * (fresh->offset + 3));  // all else is there already and not read
  CHECK_REFUSED(site.apply(made), Digest, "tiny-2.vol");
  CHECK(installed(site.prefix().folder()).size() == before.size());
  CHECK(fs::read_symlink(site.current()) == "generations/0001");
}
