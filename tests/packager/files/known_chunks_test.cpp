// SPDX-License-Identifier: Apache-2.0
// What is known of a file's chunks saves a pass over its bytes, and counts for nothing where it is wrong.
#include "packager/files/known_chunks.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/payload/chunk_digester.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/noise.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::files_of;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

// This program is linked with --wrap, so that what it hashes is counted.
static std::atomic<std::uint64_t> hashed{0}, hashed_by_sm3{0};
extern "C" {
int __real_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count);
int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count) {
  hashed += count;
  if (EVP_MD_is_a(EVP_MD_CTX_get0_md(context), "SM3") == 1) hashed_by_sm3 += count;
  return __real_EVP_DigestUpdate(context, bytes, count);
}
}

TEST_CASE("a file that was packed or fetched before is packed with one pass over its bytes") {
  Workshop workshop;
  std::string noise(9'000'000, '\0');
  unsigned seed = 5;
  for (char& byte : noise) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  workshop.add_wheel({.name = "noise", .files = {{"noise.bin", noise}}});
  workshop.pack("one");
  for (const char* out : {"two", "three"}) {
    hashed = 0;
    const bundle::Manifest manifest = workshop.pack(out).manifest;
    MESSAGE("hashed " << hashed << " of " << manifest.payload.size);
    CHECK(hashed >= manifest.payload.size);
    CHECK(hashed < manifest.payload.size + 300'000);  // interpreter, programs, manifest
    // Without what is known of its chunks, SHA-256 is computed as well.
    fs::remove_all(workshop.cache() / "chunks");
    hashed = 0;
    const std::string again = std::string(out) + "-again";
    CHECK(workshop.pack(again).manifest == manifest);
    CHECK(hashed > 2 * noise.size());
    CHECK(files_of(workshop.dir / again / "demo-1") == files_of(workshop.dir / out / "demo-1"));
  }
}

TEST_CASE("a wheel's first packing hashes what entering the cache, RECORD and its chunks demand, and no more") {
  Workshop workshop;
  workshop.lock.payload_digest = bundle::DigestAlgorithm::Sm3;  // so that the chunks are told apart
  const std::string bytes = test::noise(9'000'000);
  const LockedWheel wheel = workshop.add_wheel({.name = "noise", .files = {{"noise.bin", bytes}}});
  constexpr std::uint64_t kSmall = 300'000;  // interpreter, programs, manifest
  hashed = hashed_by_sm3 = 0;
  const bundle::Manifest manifest = workshop.pack("one").manifest;
  const std::uint64_t size = wheel.size, by_sha256 = hashed - hashed_by_sm3;
  MESSAGE("by SHA-256 " << by_sha256 << ", by SM3 " << hashed_by_sm3 << ", of " << size);
  CHECK(by_sha256 >= size + bytes.size());
  CHECK(by_sha256 < size + bytes.size() + kSmall);  // the wheel as it was fetched, and its file as RECORD says
  CHECK(hashed_by_sm3 >= 2 * size);
  CHECK(hashed_by_sm3 < 2 * size + kSmall);  // the chunks as they were fetched, and as they were written
}

TEST_CASE("an SM3 payload is hashed by SM3 alone, from its first packing on; SHA-256 is for what enters the cache") {
  Workshop workshop;
  workshop.lock.payload_digest = bundle::DigestAlgorithm::Sm3;
  const LockedWheel wheel = workshop.add_wheel({.name = "noise", .files = {{"noise.bin", test::noise(9'000'000)}}});
  constexpr std::uint64_t kSmall = 300'000;                         // interpreter, programs, manifest
  const bundle::Manifest manifest = workshop.pack("one").manifest;  // which also compares the wheel with its RECORD
  const std::uint64_t size = manifest.payload.size;
  fs::remove_all(workshop.cache() / "chunks");
  fs::remove(workshop.cache() / "sha256" / wheel.sha256.hex());  // so that it is fetched once more
  hashed = hashed_by_sm3 = 0;
  CHECK(workshop.pack("two").manifest == manifest);
  MESSAGE("hashed " << hashed << ", of that by SM3 " << hashed_by_sm3 << ", of " << size);
  CHECK(hashed_by_sm3 < 2 * size + kSmall);       // as it was fetched, and as it was written
  CHECK(hashed - hashed_by_sm3 < size + kSmall);  // as it was fetched
  hashed = hashed_by_sm3 = 0;
  CHECK(workshop.pack("three").manifest == manifest);
  CHECK(hashed_by_sm3 >= size);
  CHECK(hashed < size + kSmall);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "three/demo-1"));
}

TEST_CASE("a file that is locked is read once, for its SHA-256 and for its chunks") {
  Workshop workshop;
  const std::string bytes = test::noise(9'000'000);
  write_file(workshop.dir / "file", bytes);
  const KnownChunks known{Cache(workshop.cache())};
  std::uint64_t read = 0;
  hashed = 0;
  const bundle::Digest sha256 = known.learn(workshop.dir / "file", [&](std::uint64_t count) { read += count; });
  CHECK(read == bytes.size());
  CHECK(hashed < 2 * bytes.size() + 1000);
  CHECK(sha256 == bundle::sha256(bundle::as_bytes(bytes)));
  bundle::ChunkDigester digester;
  digester.update(bundle::as_bytes(bytes));
  CHECK(known.read(sha256, bytes.size(), bundle::Payload{}) == digester.finish());
  // The only chunk of a small file has the file's own digest, unless chunks are digested by another algorithm.
  write_file(workshop.dir / "small", "small");
  hashed = 0;
  const bundle::Digest small = known.learn(workshop.dir / "small");
  CHECK(hashed == 5);
  CHECK(known.read(small, 5, bundle::Payload{}) == std::vector<bundle::Digest>{small});
  CHECK(known.read(small, 0, bundle::Payload{}) == std::vector<bundle::Digest>{});
  CHECK_FALSE(known.read(small, 5, {.digest = bundle::DigestAlgorithm::Sm3}));
  CHECK_FALSE(known.read(small, bundle::kDefaultChunkSize + 1, bundle::Payload{}));
  // For an SM3 payload every file is learnt with its chunks, also an empty one and bytes that are in no file.
  const bundle::Payload sm3{.digest = bundle::DigestAlgorithm::Sm3};
  const KnownChunks of_sm3{Cache(workshop.cache(), bundle::DigestAlgorithm::Sm3)};
  const auto digest_by_sm3 = [](std::string_view text) {
    return bundle::digest_of(bundle::as_bytes(text), bundle::DigestAlgorithm::Sm3);
  };
  CHECK(of_sm3.learn(workshop.dir / "small") == small);
  CHECK(of_sm3.read(small, 5, sm3) == std::vector{digest_by_sm3("small")});
  CHECK(of_sm3.read(of_sm3.learn(bundle::as_bytes("text")), 4, sm3) == std::vector{digest_by_sm3("text")});
  CHECK(of_sm3.read(of_sm3.learn(bundle::ByteView()), 0, sm3) == std::vector<bundle::Digest>{});
  CHECK(of_sm3.learn(bundle::as_bytes(bytes)) == sha256);
  CHECK(of_sm3.read(sha256, bytes.size(), sm3)->back() == digest_by_sm3(bytes.substr(2 * bundle::kDefaultChunkSize)));
}

TEST_CASE("the files of a tree are compared with its digests once, and a tree that is damaged later is not packed") {
  Workshop workshop;
  workshop.add_interpreter({{"lib/python3.11/noise", {.text = test::noise(3'000'000)}}});
  workshop.pack("one");
  hashed = 0;
  const bundle::Manifest manifest = workshop.pack("two").manifest;
  CHECK(hashed < manifest.payload.size + 300'000);
  const fs::path tar = workshop.cache() / "sha256" / workshop.lock.interpreter.sha256.hex();
  const auto flip = [&](std::size_t at) {
    std::string bytes = read_file(tar);
    bytes[at] ^= 1;
    write_file(tar, bytes);
  };
  SUBCASE("in a header") {
    flip(0);
    CHECK_REFUSED(workshop.pack("three"), Digest, "in the cache is damaged");
  }
  SUBCASE("in a file, of which the compressed form is still right") {
    flip(2'000'000);
    workshop.pack("three");
    CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "three/demo-1"));
    const KnownChunks known{Cache(workshop.cache())};
    fs::remove(workshop.cache() / "sha256" / known.compressed(workshop.lock.interpreter.sha256)->sha256.hex());
    CHECK_REFUSED(workshop.pack("four"), Digest, "differs from the locked one");
  }
}

TEST_CASE("what is known of chunks counts for nothing where it is damaged or wrong") {
  Workshop workshop;
  const LockedWheel wheel = workshop.add_wheel({.name = "noise", .files = {{"noise.bin", test::noise(9'000'000)}}});
  workshop.pack("one");
  const auto known = [&] {
    return KnownChunks(Cache(workshop.cache())).read(wheel.sha256, wheel.size, bundle::Payload{});
  };
  const std::optional<std::vector<bundle::Digest>> right = known();
  REQUIRE(right);
  REQUIRE(right->size() == 3);
  SUBCASE("damaged") {
    for (const fs::directory_entry& file : fs::directory_iterator(workshop.cache() / "chunks")) {
      std::string bytes = read_file(file.path());
      bytes[0] ^= 1;
      write_file(file.path(), bytes);
    }
    CHECK_FALSE(known());
  }
  SUBCASE("torn") {
    for (const fs::directory_entry& file : fs::directory_iterator(workshop.cache() / "chunks"))
      write_file(file.path(), read_file(file.path()).substr(0, 40));
    CHECK_FALSE(known());
  }
  SUBCASE("of other bytes") {
    KnownChunks(Cache(workshop.cache())).write(wheel.sha256, wheel.size, bundle::Payload{}, {bundle::Digest{}});
  }
  SUBCASE("of as many other bytes") {
    std::vector<bundle::Digest> wrong = *right;
    std::swap(wrong[0], wrong[2]);
    KnownChunks(Cache(workshop.cache())).write(wheel.sha256, wheel.size, bundle::Payload{}, wrong);
  }
  SUBCASE("of what compressing gave") {
    const KnownChunks chunks{Cache(workshop.cache())};
    const bundle::Digest stored = chunks.compressed(workshop.lock.interpreter.sha256).value().sha256;
    const fs::path file = workshop.cache() / "sha256" / stored.hex();
    SUBCASE("whose file is gone") {
      fs::remove(file);
    }
    SUBCASE("whose file is damaged") {
      std::string bytes = read_file(file);
      bytes[bytes.size() / 2] ^= 1;
      write_file(file, bytes);
    }
    SUBCASE("whose file is cut short") {
      fs::resize_file(file, fs::file_size(file) - 1);
    }
  }
  workshop.pack("two");
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
  CHECK(known() == right);
}

TEST_CASE(
    "in a cache that others may write, a file is hashed whatever its notes say, and one that they forged is none") {
  Workshop workshop;
  const test::TinyWheel honest{.name = "noise", .files = {{"noise.bin", test::noise(9'000'000)}}};
  const LockedWheel wheel = workshop.add_wheel(honest);
  workshop.pack("one");
  // Somebody with access to the cache lays down other bytes, and the note that vouches for them.
  const KnownChunks known{Cache(workshop.cache())};
  const std::string bytes = test::make_wheel({.name = "noise", .files = {{"noise.bin", std::string(9'000'000, 'e')}}});
  const fs::path file = workshop.cache() / "sha256" / wheel.sha256.hex();
  write_file(file, bytes + std::string(wheel.size - bytes.size(), '\0'));
  bundle::ChunkDigester digester(bundle::Payload{}.chunk_size, bundle::DigestAlgorithm::Sha256);
  digester.update(bundle::as_bytes(read_file(file)));
  known.write(wheel.sha256, wheel.size, {}, digester.finish());
  // The group "root" of the account "root" would be its own.
  const auto other_group = [](const fs::path& folder) { return ::chown(folder.c_str(), -1, 1) == 0; };
  if (::geteuid() == 0)
    for (const char* folder : {"", "chunks", "native"}) REQUIRE(other_group(workshop.cache() / folder));
  const fs::path where[] = {workshop.cache(), workshop.cache() / "chunks", workshop.cache() / "native"};
  for (const fs::path& folder : where)
    for (const fs::perms others : {fs::perms::group_write, fs::perms::others_write}) {
      if (others == fs::perms::group_write && ::geteuid() != 0) continue;  // whose group this is nobody knows
      fs::permissions(folder, others, fs::perm_options::add);
      INFO(folder.string());
      CHECK_FALSE(Cache(workshop.cache()).is_private());
      CHECK_FALSE(KnownChunks(Cache(workshop.cache())).read(wheel.sha256, wheel.size, {}));
      fs::permissions(folder, others, fs::perm_options::remove);
      CHECK(Cache(workshop.cache()).is_private());
    }
  if (::geteuid() == 0) {  // notes that were laid down before the folder was closed to others
    const auto give_notes_to = [&](uid_t user) {
      for (const fs::directory_entry& note : fs::directory_iterator(workshop.cache() / "chunks"))
        REQUIRE(::chown(note.path().c_str(), user, -1) == 0);
    };
    CHECK(KnownChunks(Cache(workshop.cache())).read(wheel.sha256, wheel.size, {}));
    give_notes_to(1);
    CHECK_FALSE(KnownChunks(Cache(workshop.cache())).read(wheel.sha256, wheel.size, {}));
    give_notes_to(0);
  }
  fs::permissions(workshop.cache(), fs::perms::others_write, fs::perm_options::add);
  std::FILE* const said = std::fopen((workshop.dir / "said").c_str(), "w");
  workshop.pack("two", 0, {}, said);
  std::fclose(said);
  CHECK(files_of(workshop.dir / "one/demo-1") == files_of(workshop.dir / "two/demo-1"));
  CHECK(read_file(workshop.dir / "said").find("others may write into the cache") != std::string::npos);
}
