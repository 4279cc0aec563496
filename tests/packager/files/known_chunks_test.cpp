// SPDX-License-Identifier: Apache-2.0
// What is known of a file's chunks saves a pass over its bytes, and counts for nothing where it is wrong.
#include "packager/files/known_chunks.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "bundle/core/openssl.hpp"
#include "sealift/bundle/payload/chunk_digester.hpp"
#include "tests/packager/workshop.hpp"
#include "tests/support/noise.hpp"

using namespace sealift;
using namespace sealift::packager;
using sealift::test::files_of;
using sealift::test::read_file;
using sealift::test::Workshop;
using sealift::test::write_file;
namespace fs = std::filesystem;

// This program is linked with --wrap, so that what it hashes is counted.
static std::atomic<std::uint64_t> hashed{0};
extern "C" {
int __real_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count);
int __wrap_EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t count) {
  hashed += count;
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
