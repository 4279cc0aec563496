// SPDX-License-Identifier: Apache-2.0
// Where chunks begin, and what names the content of an entry: a change of anything that the name vouches for is another
// name.
#include "sealift/bundle/manifest/chunk_layout.hpp"

#include <doctest/doctest.h>

#include <set>

#include "sealift/bundle/payload/chunk_digester.hpp"
#include "tests/support/tiny_bundle.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

Entry stored(std::uint64_t offset, std::uint64_t size) {
  return {.path = SafePath::parse("a", ""), .size = size, .offset = offset, .stored_size = size};
}

Payload payload_of(std::uint64_t size, const std::vector<Entry>& entries) {
  Payload payload{.size = size, .chunk_size = 4096};
  payload.cuts = cuts_of(entries, size);
  return payload;
}

std::vector<std::uint64_t> begins(const Payload& payload) {
  const ChunkLayout layout(payload);
  std::vector<std::uint64_t> found;
  for (std::uint64_t i = 0; i < layout.count(); ++i) found.push_back(layout.begin_of(i));
  return found;
}

}  // namespace

TEST_CASE("an entry begins a chunk of its own and ends one, and what lies between is cut alike") {
  using Offsets = std::vector<std::uint64_t>;
  CHECK(begins(payload_of(10000, {})) == Offsets{0, 4096, 8192});
  CHECK(begins(payload_of(20000, {stored(512, 5000)})) == Offsets{0, 512, 4608, 5512, 9608, 13704, 17800});
  CHECK(begins(payload_of(20000, {stored(4096, 4096), stored(9000, 1)})) ==
        Offsets{0, 4096, 8192, 9000, 9001, 13097, 17193});
  CHECK(begins(payload_of(5000, {stored(5000, 0), stored(0, 100), stored(300, 0)})) == Offsets{0, 100, 300, 4396});
  Entry absent = stored(100, 100);
  absent.absent = true;
  CHECK(begins(payload_of(4096, {absent})) == Offsets{0});
}

TEST_CASE("every byte is in one chunk, and a chunk is found by any of its bytes") {
  const Payload payload = payload_of(20000, {stored(512, 5000), stored(8192, 4096), stored(12288, 7000)});
  const ChunkLayout layout(payload);
  CHECK(layout.count() == payload.chunk_count());
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < layout.count(); ++i) {
    REQUIRE(layout.begin_of(i) == end);
    REQUIRE(layout.size_of(i) > 0);
    REQUIRE(layout.size_of(i) <= 4096);
    end += layout.size_of(i);
    for (const std::uint64_t byte : {layout.begin_of(i), end - 1}) REQUIRE(layout.at(byte) == i);
    REQUIRE(layout.from(end) == i + 1);
    if (layout.size_of(i) > 1) REQUIRE(layout.from(end - 1) == i + 1);
  }
  CHECK(end == payload.size);
}

TEST_CASE("a content's name changes with its bytes and with all that says what they mean") {
  const Payload payload{.size = 20000, .chunk_size = 4096};
  const std::vector<Digest> chunks = {sha256(as_bytes("1")), sha256(as_bytes("2"))};
  Entry entry = stored(512, 5000);
  entry.sha256 = sha256(as_bytes("promised"));
  std::set<Digest> names = {content_digest(entry, payload, chunks)};
  const auto another = [&](const std::function<void(Entry&, Payload&, std::vector<Digest>&)>& change) {
    Entry e = entry;
    Payload p = payload;
    std::vector<Digest> c = chunks;
    change(e, p, c);
    CHECK(names.insert(content_digest(e, p, c)).second);
  };
  another([](auto&, auto&, auto& c) { std::swap(c[0], c[1]); });
  another([](auto&, auto&, auto& c) { c.pop_back(); });
  another([](auto&, auto&, auto& c) { c[1].bytes[31] ^= std::byte{1}; });
  another([](auto&, auto& p, auto&) { p.chunk_size = 8192; });
  another([](auto&, auto& p, auto&) { p.digest = DigestAlgorithm::Sm3; });
  another([](auto& e, auto&, auto&) { e.encoding = Encoding::Zstd; });
  another([](auto& e, auto&, auto&) { e.size = 5001; });
  another([](auto& e, auto&, auto&) { e.stored_size = 4999; });
  another([](auto& e, auto&, auto&) { e.sha256.bytes[0] ^= std::byte{1}; });
  // And with nothing else: where it lies, how it is called, what lies beside it.
  Entry moved = entry;
  moved.offset = 8192;
  moved.path = SafePath::parse("b", "");
  moved.installed_size = 7;
  Payload other = payload;
  other.size = 30000;
  CHECK(names.contains(content_digest(moved, other, chunks)));
}

TEST_CASE("the formula of a content's name is FORMAT.md's") {
  Entry entry = stored(512, 3);
  entry.sha256 = sha256(as_bytes("abc"));
  const Payload payload{.size = 4096, .chunk_size = 4096};
  const Digest chunk = sha256(as_bytes("abc"));
  const std::string line = "sealift-content-v2 identity 3 " + chunk.hex() + " 3 sha256 4096\n";
  CHECK(content_digest(entry, payload, std::vector{chunk}) ==
        sha256(as_bytes(line + std::string(as_text(chunk.bytes)))));
}

TEST_CASE("what an entry becomes is known before it is in any payload, and every bundle that has it agrees") {
  for (const DigestAlgorithm digest : {DigestAlgorithm::Sha256, DigestAlgorithm::Sm3}) {
    const TempDir dir;
    TinyBundle tiny{.digest = digest};
    const std::string text(9000, 't');
    tiny.items = {{.path = "a", .bytes = "", .into = "a"},
                  {.path = "b", .bytes = text, .into = "b"},
                  {.path = "c", .bytes = text, .into = "c", .encoding = Encoding::Zstd}};
    const MadeBundle alone = make_bundle(dir / "alone", tiny);
    tiny.items.push_back({.path = "Z", .bytes = std::string(5000, 'z'), .into = "z"});
    const MadeBundle beside = make_bundle(dir / "beside", tiny);
    std::set<Digest> names;
    for (const Entry& entry : alone.manifest.entries) {
      CHECK(names.insert(entry.content).second);
      CHECK(beside.manifest.find(entry.path)->content == entry.content);
      CHECK(beside.manifest.find(entry.path)->offset != entry.offset);
      const VerifiedBundle read = verify(open(alone.folder), alone.trusted, kNow);
      CHECK(read.manifest() == alone.manifest);
    }
    for (const TinyItem& item : {tiny.items[0], tiny.items[1], tiny.items[2]})
      CHECK((item.path == "Z" || names.contains(*Digest::from_hex(store_name_of(item, tiny).substr(0, 64)))));
  }
}
