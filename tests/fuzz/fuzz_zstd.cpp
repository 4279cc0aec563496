// SPDX-License-Identifier: Apache-2.0
// The first two bytes are the signed size, the rest the frame. What is accepted is what zstd itself makes of the whole,
// and the pieces it comes in do not matter.
#include "bundle/archive/zstd.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

FUZZ(text) {
  if (text.size() < 2) return;
  const std::uint64_t size = static_cast<unsigned char>(text[0]) | static_cast<unsigned char>(text[1]) << 8;
  text.remove_prefix(2);
  const auto decode = [&](std::size_t step, std::string& out) {
    ZstdDecoder decoder(size, "frame");
    for (std::size_t at = 0; at < text.size(); at += step)
      decoder.feed(as_bytes(text.substr(at, step)), [&](ByteView piece) {
        out.append(as_text(piece));
        must(out.size() <= size, "not more than was signed");
      });
    decoder.finish();
  };
  std::string whole, pieces;
  const bool good = accepted([&] { decode(text.size() + 1, whole); });
  must(accepted([&] { decode(3, pieces); }) == good, "the pieces do not matter");
  if (!good) return;
  must(whole == pieces && whole.size() == size, "the signed size");
  std::string stock(size + 1, '\0');
  must(ZSTD_decompress(stock.data(), stock.size(), text.data(), text.size()) == size && stock.substr(0, size) == whole,
       "zstd makes the same of it");
  must(ZSTD_findFrameCompressedSize(text.data(), text.size()) == text.size(), "one frame and nothing else");
}
