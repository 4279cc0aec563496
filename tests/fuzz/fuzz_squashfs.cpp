// SPDX-License-Identifier: Apache-2.0
// An image that is read is a tree: each node hangs below the root under a name that a file can have, and each read
// gives no more than the file has. The bytes are those of a signed list, so what is tried is what a signer could have
// made.
#include <vector>

#include "bundle/image/image_reader.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/temp_dir.hpp"

using namespace sealift::bundle;
using namespace sealift::test;

namespace {

constexpr std::uint64_t kPieces = 8;  // of a file, which may claim any size

void walk(const ImageReader& image) {
  const auto& nodes = image.nodes();
  std::vector<std::byte> piece(50'000);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    must(nodes[i].parent < nodes.size() && (i == 0 || nodes[i].parent < i), "a folder comes before what it holds");
    if (i != 0) must(image.child(nodes[i].parent, nodes[i].name) == i, "a name leads to its node");
    must(nodes[i].name.find('/') == std::string::npos, "a name is one of a folder");
    if (nodes[i].type != ImageReader::Type::File) continue;
    for (std::uint64_t k = 0; k < kPieces; ++k) {
      const std::uint64_t at = k * piece.size();
      accepted([&] { must(image.read(i, at, piece) <= piece.size(), "no more is read than was asked for"); });
    }
  }
}

}  // namespace

FUZZ(text) {
  static const TempDir dir;
  constexpr std::uint64_t kChunk = 65536;
  write_file(dir / "image", std::string(text));
  std::vector<Digest> chunks;
  for (std::size_t at = 0; at < text.size(); at += kChunk) chunks.push_back(sha256(as_bytes(text.substr(at, kChunk))));
  accepted([&] {
    const PayloadReader reader(
        dir.path(), {.size = text.size(), .chunk_size = kChunk, .volumes = {{.name = "image", .size = text.size()}}},
        chunks);
    const CheckedRange bytes(reader, 0, text.size(), kChunk);
    const ImageReader image(bytes, "image");
    walk(image);
  });
}
