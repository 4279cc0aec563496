// SPDX-License-Identifier: Apache-2.0
// One frame in, one frame out; what stock zstd silently accepts beyond that is refused.
#include "sealift/bundle/zstd.hpp"

#include "tests/support/refusal.hpp"

using namespace sealift::bundle;

namespace {

std::string compressed(std::string_view text) {
  std::string out;
  const ByteSink sink = [&out](ByteView piece) { out.append(as_text(piece)); };
  ZstdEncoder encoder(text.size());
  encoder.feed(as_bytes(text), sink);
  encoder.finish(sink);
  return out;
}

std::string decompressed(std::string_view bytes, std::uint64_t size, std::size_t step = 7) {
  std::string out;
  ZstdDecoder decoder(size, "the entry");
  for (std::size_t i = 0; i < bytes.size(); i += step)
    decoder.feed(as_bytes(bytes.substr(i, step)), [&out](ByteView piece) { out.append(as_text(piece)); });
  decoder.finish();
  return out;
}

}  // namespace

TEST_CASE("zstd round-trips in pieces, and gives the same bytes each time") {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919 % 1000);
  for (const std::string& plain : {std::string(), std::string("x"), text}) {
    CHECK(decompressed(compressed(plain), plain.size()) == plain);
    CHECK(compressed(plain) == compressed(plain));
  }
  CHECK(compressed(text).size() < text.size() / 2);
}

TEST_CASE("compressed bytes that are not exactly one honest frame are refused") {
  const std::string good = compressed("hello hello hello hello");
  CHECK_REFUSED(decompressed(good, 22), Format, "more comes out");
  CHECK_REFUSED(decompressed(good, 24), Format, "less comes out");
  CHECK_REFUSED(decompressed(good.substr(0, good.size() - 1), 23), Format, "not complete");
  CHECK_REFUSED(decompressed(good + "x", 23), Format, "bytes follow");
  CHECK_REFUSED(decompressed(good + good, 46), Format, "bytes follow");
  CHECK_REFUSED(decompressed(std::string("\x50\x2a\x4d\x18\x00\x00\x00\x00", 8) + good, 23), Format, "zstd frame");
  CHECK_REFUSED(decompressed("", 0), Format, "not complete");
  std::string damaged = good;
  damaged[damaged.size() - 2] ^= 1;  // in the checksum
  CHECK_REFUSED(decompressed(damaged, 23), Format, "the entry");
}

TEST_CASE("a bomb stops at the signed size") {
  const std::string bomb = compressed(std::string(50'000'000, '\0'));
  CHECK(bomb.size() < 5000);
  std::uint64_t got = 0;
  ZstdDecoder decoder(1000, "bomb");
  CHECK_THROWS_AS(decoder.feed(as_bytes(bomb), [&got](ByteView piece) { got += piece.size(); }), Error);
  CHECK(got <= 1000);
}

TEST_CASE("an encoder that was promised other sizes refuses") {
  ZstdEncoder encoder(5);
  const ByteSink ignore = [](ByteView) {};
  CHECK_THROWS_AS((encoder.feed(as_bytes("123456"), ignore), encoder.finish(ignore)), Error);
}
