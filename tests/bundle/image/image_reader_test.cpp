// SPDX-License-Identifier: Apache-2.0
// Our reader sees what was written; an image that somebody made to hurt it is refused or read, and nothing else.
#include "bundle/image/image_reader.hpp"

#include <doctest/doctest.h>

#include <random>
#include <thread>

#include "tests/support/bounded_memory.hpp"
#include "tests/support/image_trees.hpp"
#include "tests/support/refusal.hpp"

using namespace sealift;
using namespace sealift::bundle;
using namespace sealift::test;

namespace {

// An image in a folder of its own, with the chunk list of the bytes that it had at first.
class Medium {
 public:
  explicit Medium(const PlainTree& tree) {
    write_image_of(tree, path());
    bytes = read_file(path());
    trust();
  }
  explicit Medium(std::string image) : bytes(std::move(image)) {
    write_file(path(), bytes);
    trust();
  }

  std::filesystem::path path() const { return dir_ / "image"; }
  const PayloadReader& reader() const { return *reader_; }
  std::string bytes;

 private:
  void trust() {
    constexpr std::uint64_t kChunk = 65536;
    std::vector<Digest> chunks;
    for (std::uint64_t at = 0; at < bytes.size(); at += kChunk)
      chunks.push_back(sha256(as_bytes(std::string_view(bytes).substr(at, kChunk))));
    const Payload payload{
        .size = bytes.size(), .chunk_size = kChunk, .volumes = {{.name = "image", .size = bytes.size()}}};
    reader_ = std::make_unique<PayloadReader>(dir_.path(), payload, chunks);
  }

  TempDir dir_;
  std::unique_ptr<PayloadReader> reader_;
};

std::string path_of(const ImageReader& image, std::size_t node) {
  const std::string name = image.nodes()[node].name;
  const std::size_t parent = image.nodes()[node].parent;
  return parent == 0 ? name : path_of(image, parent) + "/" + name;
}

std::string bytes_of(const ImageReader& image, std::size_t node, std::size_t piece) {
  std::string text(static_cast<std::size_t>(image.nodes()[node].size), '?');
  for (std::size_t at = 0; at < text.size();) {
    const auto out = std::as_writable_bytes(std::span(text)).subspan(at, std::min(piece, text.size() - at));
    const std::size_t got = image.read(node, at, out);
    if (got == 0) break;
    at += got;
  }
  return text;
}

DiskImage seen(const ImageReader& image, std::size_t piece = 100'000) {
  DiskImage tree;
  for (std::size_t i = 1; i < image.nodes().size(); ++i) {
    const ImageReader::Node& node = image.nodes()[i];
    ImagePath& there = tree[path_of(image, i)];
    there.twin = path_of(image, i);
    there.node.mode = node.mode;
    if (node.type == ImageReader::Type::Folder) continue;
    const bool link = node.type == ImageReader::Type::Link;
    there.node.type = link ? DiskNode::Type::Link : DiskNode::Type::File;
    there.node.data = link ? node.target : bytes_of(image, i, piece);
  }
  return tree;
}

constexpr std::uint64_t kMemory = 1 << 20;

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A block of a table, not compressed.
std::string stored(const std::string& text) {
  return number(0x8000 | text.size(), 2) + text;
}

std::string inode(std::uint64_t type, std::uint64_t index, const std::string& body) {
  return number(type, 2) + number(0755, 2) + number(0, 4) + number(0, 4) + number(index, 4) + body;
}

// An image with one name "n" in its root, by hand (SquashFS 4.0, little endian); `body` stands behind the head that
// each inode has.
std::string by_hand(std::uint64_t type, const std::string& body) {
  constexpr std::uint64_t kSuper = 96, kNone = ~std::uint64_t{0};
  const std::string root =
      inode(1, 1, number(0, 4) + number(2, 4) + number(12 + 9 + 3, 2) + number(0, 2) + number(2, 4));
  const std::string inodes = stored(root + inode(type, 2, body));
  const std::string folders = stored(number(0, 4) + number(0, 4) + number(1, 4) +  // one name, in block 0, from inode 1
                                     number(root.size(), 2) + number(1, 2) + number(type, 2) + number(0, 2) + "n");
  const std::uint64_t end = kSuper + inodes.size() + folders.size();
  return "hsqs" + number(2, 4) + number(0, 4) + number(131'072, 4) + number(0, 4) + number(6, 2) + number(17, 2) +
         number(0x10, 2) + number(1, 2) + number(4, 2) + number(0, 2) + number(0, 8) + number(end, 8) + number(end, 8) +
         number(kNone, 8) + number(kSuper, 8) + number(kSuper + inodes.size(), 8) + number(kNone, 8) +
         number(kNone, 8) + inodes + folders;
}

std::string link(std::uint64_t size, const std::string& target) {
  return by_hand(3, number(1, 4) + number(size, 4) + target);
}

std::string large_file(std::uint64_t size) {
  return by_hand(9, number(0, 8) + number(size, 8) + number(0, 8) + number(1, 4) + number(0xFFFFFFFF, 4) +
                        number(0, 4) + number(0xFFFFFFFF, 4));
}

}  // namespace

TEST_CASE("an image is read as it was written, in pieces of any size") {
  const PlainTree tree = each_kind_of_file();
  const Medium medium(tree);
  const CheckedRange range(medium.reader(), 0, medium.bytes.size(), kMemory);
  const ImageReader image(range, "image");
  for (const std::size_t piece : {std::size_t{1'000'000}, std::size_t{131'072}, std::size_t{7'777}})
    CHECK((seen(image, piece) == tree.expected()));
  CHECK(image.nodes().front().time == 1'700'000'000);
  CHECK(image.child(0, "bin.d"));
  CHECK(!image.child(0, "bin.e"));
  std::byte rest[10];
  CHECK(image.read(*image.child(0, "bin.d"), 1'000'000, rest) == 0);
}

TEST_CASE("several threads read one image, and what they keep is bounded") {
  PlainTree tree;
  for (int i = 0; i < 40; ++i) tree.paths["f" + std::to_string(i)] = noise(200'000, static_cast<unsigned>(i));
  const Medium medium(tree);
  const CheckedRange range(medium.reader(), 0, medium.bytes.size(), 3 * 65536);
  const ImageReader image(range, "image");
  const DiskImage expected = tree.expected();
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < 4; ++k) threads.emplace_back([&] { wrong += seen(image) != expected; });
  }
  CHECK(wrong == 0);
  CHECK(range.chunks_read() >= medium.bytes.size() / 65536);
}

TEST_CASE("a byte that is not what the list says is never given, and its place is named") {
  PlainTree tree;
  for (int i = 0; i < 20; ++i) tree.paths["f" + std::to_string(10 + i)] = noise(131'072, static_cast<unsigned>(i));
  const Medium medium(tree);
  const CheckedRange range(medium.reader(), 0, medium.bytes.size(), 65536);
  const ImageReader image(range, "image");
  std::string changed = medium.bytes;
  changed[700'000] ^= 4;
  write_file(medium.path(), changed);
  int bad = 0, good = 0;
  for (std::size_t i = 1; i < image.nodes().size(); ++i) try {
      good += bytes_of(image, i, 131'072) == tree.paths.at(image.nodes()[i].name);
    } catch (const Error& error) {
      ++bad;
      CHECK(error.code() == ErrorCode::Digest);
      CHECK(mentions(error, "image at offset 655360"));
    }
  CHECK(bad > 0);
  CHECK(good + bad == 20);
  write_file(medium.path(), medium.bytes);  // the medium was put in again
  CHECK((seen(image) == tree.expected()));
}

TEST_CASE("other files than images, and images with features that ours lack, are refused") {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const Medium medium(bytes);
    const CheckedRange range(medium.reader(), 0, bytes.size(), kMemory);
    CHECK_REFUSED(ImageReader(range, "x"), Format, why);
  };
  refused(std::string(10'000, 'x'), "no image");
  refused("hsqs", "no image");
  const Medium good(each_kind_of_file());
  std::string gzip = good.bytes;
  gzip[20] = 1;
  refused(gzip, "zstd");
  refused(good.bytes.substr(0, good.bytes.size() / 2), "");
  std::string many = good.bytes;
  many.replace(4, 4, std::string(4, '\x7f'));
  const Medium medium(many);
  const CheckedRange range(medium.reader(), 0, many.size(), kMemory);
  CHECK_REFUSED(ImageReader(range, "x"), CannotCheck, "more names");
}

TEST_CASE("an image that claims more than it has is refused before memory is taken for it") {
  const auto refused = [](const std::string& bytes, ErrorCode code, const std::string& why) {
    const Medium medium(bytes);
    const CheckedRange range(medium.reader(), 0, bytes.size(), kMemory);
    const BoundedMemory bound(256U << 20);
    try {
      const ImageReader image(range, "x");
      FAIL_CHECK("it was read: ", why);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(mentions(error, why));
    }
  };

  const std::string good = link(4, "here");
  const Medium medium(good);
  const CheckedRange range(medium.reader(), 0, good.size(), kMemory);
  const ImageReader image(range, "x");  // so that what is refused below is refused for what it claims
  REQUIRE(image.child(0, "n"));
  CHECK(image.nodes()[*image.child(0, "n")].target == "here");

  refused(link(0xFFFFFFFF, "here"), ErrorCode::Format, "longer than any path");
  refused(link(4095, "here"), ErrorCode::Format, "");
  refused(large_file(std::uint64_t{1} << 62), ErrorCode::Format, "more blocks than any image has");
  refused(large_file(std::uint64_t{1} << 45), ErrorCode::CannotCheck, "more names and blocks");
  refused(large_file(std::uint64_t{1} << 44), ErrorCode::Format, "");  // 512 MiB of blocks, of which none is there
  refused(by_hand(4, number(1, 4) + number(0, 4)), ErrorCode::Format, "other than a file, folder or link");

  std::string fragments = Medium(each_kind_of_file()).bytes;
  const auto inodes = static_cast<unsigned char>(fragments[4]);
  REQUIRE(fragments.substr(5, 3) == std::string(3, '\0'));
  fragments.replace(16, 4, number(inodes + 1U, 4));  // each has the end of a file
  refused(fragments, ErrorCode::Format, "more fragments");
  fragments.replace(16, 4, number(838'860'801, 4));  // found by the fuzzer: 13 GB for a table
  refused(fragments, ErrorCode::Format, "more fragments");
  std::string names = fragments;
  names.replace(4, 4, number(ImageReader::kMaxNodes, 4)).replace(16, 4, number(ImageReader::kMaxNodes, 4));
  refused(names, ErrorCode::Format, "more fragments");
}

TEST_CASE("two hundred mutated images are refused or read, and nothing else happens") {
  const Medium good(each_kind_of_file());
  std::mt19937 random(51);
  const auto tables = good.bytes.size() - 4096;
  int refused = 0, read = 0;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = good.bytes;
    // Half of them in the super block and the tables, where numbers are that lead elsewhere.
    for (int k = 0; k < 1 + round % 4; ++k) {
      const std::size_t at = round % 4 == 0   ? random() % 96
                             : round % 4 == 1 ? tables + random() % 4096
                                              : random() % bytes.size();
      const char values[] = {
          '\0', '\xff', '\x80', '\x7f', static_cast<char>(random()), static_cast<char>(bytes[at] ^ 1)};
      bytes[at] = values[random() % 6];
    }
    if (round % 10 == 9) bytes.resize(random() % bytes.size() + 1);
    const Medium medium(bytes);
    const CheckedRange range(medium.reader(), 0, bytes.size(), kMemory);
    try {
      const ImageReader image(range, "image");
      for (std::size_t i = 1; i < image.nodes().size(); ++i) {
        if (image.nodes()[i].type != ImageReader::Type::File) continue;
        std::vector<std::byte> piece(200'000);
        for (std::uint64_t at = 0; at < 2'000'000; at += piece.size()) image.read(i, at, piece);
      }
      ++read;
    } catch (const Error& error) {
      ++refused;
      CHECK(error.code() == ErrorCode::Format);
    }
  }
  MESSAGE("refused ", refused, ", read ", read);
  CHECK(refused + read == 200);
  CHECK(refused > 50);
}
