// SPDX-License-Identifier: Apache-2.0
// Hash trees are those of veritysetup, which says the root for each size; where it is missing, a line says so.
#include "bundle/image/verity_tree.hpp"

#include <doctest/doctest.h>

#include <cstdio>

#include "tests/support/image_trees.hpp"
#include "tests/support/left_out.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::bundle;
using namespace sealift::test;

namespace {

std::string output_of(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  char piece[4096];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, count);
  ::pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("a hash tree is the one that veritysetup makes, for one block and for levels that are just full or not") {
  if (output_of("veritysetup --version").find("veritysetup 2") == std::string::npos)
    return left_out("there is no veritysetup");
  const Digest name = sha256(as_bytes("name"));
  const std::string hex = to_hex(ByteView(name.bytes).first(16));
  const std::string uuid = hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
                           hex.substr(16, 4) + "-" + hex.substr(20);
  for (const std::size_t blocks : {1u, 2u, 128u, 129u, 1000u, 16'384u, 16'385u}) {
    const TempDir dir;
    const std::string image = (dir / "image").string(), ours = (dir / "ours").string(),
                      theirs = (dir / "theirs").string();
    std::string bytes = noise(4096, static_cast<unsigned>(blocks));
    while (bytes.size() < blocks * 4096) bytes += bytes.substr(0, std::min(bytes.size(), blocks * 4096 - bytes.size()));
    bytes[bytes.size() - 1] ^= 1;
    write_file(image, bytes);
    const Digest root = write_verity_tree(image, ours, name, 3);
    const std::string said = output_of("veritysetup format --salt=- --uuid=" + uuid + " " + image + " " + theirs);
    INFO(said);
    CHECK(said.find(root.hex()) != std::string::npos);
    VerityRoot in_pieces;
    for (std::size_t at = 0, size = 1; at < bytes.size(); at += size, size = size * 3 % 20'011)
      in_pieces.add(as_bytes(std::string_view(bytes).substr(at, size)));
    CHECK(in_pieces.finish() == root);
    CHECK((read_file(ours) == read_file(theirs)));
    CHECK(output_of("veritysetup verify " + image + " " + ours + " " + root.hex()).empty());
    bytes[bytes.size() / 2] ^= 1;
    write_file(image, bytes);
    CHECK(!output_of("veritysetup verify " + image + " " + ours + " " + root.hex()).empty());
  }
}

TEST_CASE("a file that does not consist of whole blocks has no hash tree") {
  const TempDir dir;
  for (const std::size_t size : {std::size_t{0}, std::size_t{4095}, std::size_t{5000}}) {
    write_file(dir / "image", std::string(size, 'x'));
    CHECK_REFUSED(write_verity_tree(dir / "image", dir / "tree", {}, 1), Format, "4096");
    VerityRoot root;
    root.add(Bytes(size));
    CHECK_REFUSED(root.finish(), Format, "4096");
  }
}
