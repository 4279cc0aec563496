// SPDX-License-Identifier: Apache-2.0
// One frame in, one frame out; what stock zstd silently accepts beyond that is refused.
#include "bundle/archive/zstd.hpp"

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

// A frame by hand, RFC 8878 section 3.1.1: size of eight bytes, a window, a checksum (of which only its place is right
// unless the content is known), and blocks that each stand for 128 KiB of zeros in four bytes.
struct FrameHeader {
  std::uint64_t claimed_size;
  int window_log = 20;
};

constexpr unsigned char kDescriptor = 0b1100'0100;
constexpr std::uint64_t kTenGiB = std::uint64_t{10} << 30;

std::string zeros_frame(const FrameHeader& header, std::uint64_t size) {
  const auto put = [](std::string& out, std::uint64_t value, int bytes) {
    for (; bytes > 0; --bytes, value >>= 8) out.push_back(static_cast<char>(value & 255));
  };
  std::string frame("\x28\xb5\x2f\xfd");
  frame += static_cast<char>(kDescriptor);
  frame += static_cast<char>((header.window_log - 10) << 3);
  put(frame, header.claimed_size, 8);
  for (std::uint64_t left = size; left > 0;) {
    const std::uint64_t block = std::min<std::uint64_t>(left, 128 * 1024);
    left -= block;
    put(frame, block << 3 | 0b010 | (left == 0 ? 1 : 0), 3);
    frame.push_back('\0');
  }
  // The checksum of 300,000 zeros, as stock zstd writes it.
  if (size == 300'000) {
    const std::string stock = compressed(std::string(300'000, '\0'));
    return frame + stock.substr(stock.size() - 4);
  }
  return frame + "none";
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

TEST_CASE("a bomb of 330 kB that becomes 10 GiB is stopped at the first byte over the signed size") {
  for (const std::uint64_t signed_size : {std::uint64_t{0}, std::uint64_t{1000}, std::uint64_t{1'000'000}})
    for (const std::uint64_t claimed : {signed_size, kTenGiB}) {
      const std::string bomb = zeros_frame({.claimed_size = claimed}, kTenGiB);
      CHECK(bomb.size() < 330'000);
      std::uint64_t got = 0;
      ZstdDecoder decoder(signed_size, "bomb");
      CHECK_REFUSED(decoder.feed(as_bytes(bomb), [&got](ByteView piece) { got += piece.size(); }), Format, "bomb");
      CHECK(got <= signed_size);
    }
}

TEST_CASE("frames made by hand are good frames until something is wrong with them") {
  const std::string good = zeros_frame({.claimed_size = 300'000}, 300'000);
  CHECK(decompressed(good, 300'000, 1) == std::string(300'000, '\0'));
  CHECK(decompressed(zeros_frame({.claimed_size = 300'000, .window_log = 23}, 300'000), 300'000).size() == 300'000);
  CHECK_REFUSED(decompressed(zeros_frame({.claimed_size = 300'001}, 300'000), 300'000), Format, "the entry");
  CHECK_REFUSED(decompressed(zeros_frame({.claimed_size = 299'999}, 300'000), 300'000), Format, "the entry");
}

TEST_CASE("a window above 8 MiB is refused before memory is taken for it") {
  for (const int log : {24, 27, 28, 31, 41}) {
    CAPTURE(log);
    CHECK_REFUSED(decompressed(zeros_frame({.claimed_size = 300'000, .window_log = log}, 300'000), 300'000), Format,
                  "too much memory");
  }
}

TEST_CASE("a frame that wants a dictionary, or has no checksum or size, is refused") {
  const auto refused = [](unsigned char descriptor, const char* why) {
    std::string frame = zeros_frame({.claimed_size = 1000}, 1000);
    frame[4] = static_cast<char>(descriptor);
    CHECK_REFUSED(decompressed(frame, 1000), Format, why);
  };
  for (const unsigned char id_size : {1, 2, 3})
    refused(static_cast<unsigned char>(kDescriptor | id_size), "wants a dictionary");
  refused(kDescriptor & ~0b100, "no checksum");
  refused(0b100, "does not say its size");
  refused(kDescriptor | 0b1000, "the entry");  // a reserved bit
}

TEST_CASE("what other compressors write, and zstd's own frames of other kinds, are no zstd frame") {
  const std::string good = compressed("hello");
  const auto refused = [](const std::string& bytes) {
    for (const std::size_t step : {std::size_t{1}, bytes.size()})
      CHECK_REFUSED(decompressed(bytes, 5, step), Format, "does not start with a zstd frame");
  };
  for (const std::string& magic :
       {std::string("\x1f\x8b\x08\x00", 4),
        std::string("\xfd"
                    "7zXZ"),
        std::string("BZh9"), std::string("\x04\x22\x4d\x18"), std::string("LZIP"), std::string("PK\x03\x04"),
        std::string("7z\xbc\xaf"), std::string("\x5d\x00\x00\x80", 4),
        std::string("\x7f"
                    "ELF")})
    refused(magic + good);
  for (int kind = 0; kind < 16; ++kind)  // skippable frames, of four bytes each
    refused(std::string(1, static_cast<char>(0x50 + kind)) + std::string("\x2a\x4d\x18\x04\0\0\0abcd", 11) + good);
  for (const char version : {'\x1e', '\x22', '\x23', '\x24', '\x25', '\x26', '\x27'})  // zstd v0.1 to v0.7
    refused(version + good.substr(1));
  CHECK_REFUSED(decompressed(good + std::string("\x50\x2a\x4d\x18\0\0\0\0", 8), 5), Format, "bytes follow");
}

TEST_CASE("a frame cut anywhere is refused, and a flipped bit never changes what comes out") {
  std::string plain;
  for (int i = 0; i < 300; ++i) plain += std::to_string(i * 7919 % 1000);
  const std::string good = compressed(plain);
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_REFUSED(decompressed(good.substr(0, size), plain.size()), Format, "not complete");
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    try {
      const std::string out = decompressed(bad, plain.size());
      CHECK(out == plain);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::Format);
    }
  }
}

TEST_CASE("an encoder that was promised other sizes refuses") {
  ZstdEncoder encoder(5);
  const ByteSink ignore = [](ByteView) {};
  CHECK_THROWS_AS((encoder.feed(as_bytes("123456"), ignore), encoder.finish(ignore)), Error);
}

TEST_CASE("found by the fuzzer: a frame whose header says another size, with one empty block that comes in pieces") {
  const std::string frame("\x28\xb5\x2f\xfd\x24\x80\x01\0\0\x99\xe9\xd8\x51", 13);
  for (const std::size_t step : {1, 3, 13}) {
    const auto decode = [&] {
      ZstdDecoder decoder(0, "frame");
      for (std::size_t at = 0; at < frame.size(); at += step)
        decoder.feed(as_bytes(std::string_view(frame).substr(at, step)), [](ByteView) {});
      decoder.finish();
    };
    CHECK_THROWS_AS(decode(), Error);
  }
}

TEST_CASE("found by the fuzzer: a compressed block of no bytes, which zstd takes in pieces only") {
  const std::string frame("\x28\xb5\x2f\xfd\x24\0\x05\0\0\x99\xe9\xd8\x51", 13);
  for (const std::size_t step : {1, 3, 13})
    CHECK_REFUSED(decompressed(frame, 0, step), Format, "a compressed block has no bytes");
}

TEST_CASE("found by the fuzzer: a repeated block in a frame of no bytes, which zstd takes whole only") {
  const std::string frame("\x28\xb5\x2f\xfd\x24\0\0\0\0\x03\0\0\0\x99\xe9\xd8\x51", 17);
  for (const std::size_t step : {1, 3, 16, 17})
    CHECK_REFUSED(decompressed(frame, 0, step), Format, "compressed bytes are not acceptable");
}
