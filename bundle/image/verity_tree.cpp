// SPDX-License-Identifier: Apache-2.0
// Source: the kernel's Documentation/admin-guide/device-mapper/verity.rst and cryptsetup's wiki, "DMVerity": a super
// block, then the levels from the top down. A level holds the hash of each block of the one below, the lowest those of
// the image; its last block is filled up with zeros.
#include "bundle/image/verity_tree.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/core/output_file.hpp"
#include "sealift/bundle/core/parallel_for.hpp"

namespace sealift::bundle {

namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kHash = 32;
constexpr std::size_t kPiece = std::size_t{4} << 20;  // bytes that one thread reads at a time

void hash_blocks(ByteView blocks, std::byte* out) {
  for (std::size_t at = 0; at < blocks.size(); at += kBlock, out += kHash) {
    const Digest digest = sha256(blocks.subspan(at, kBlock));
    std::memcpy(out, digest.bytes.data(), kHash);
  }
}

std::size_t whole_blocks(std::size_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

Bytes lowest_level(const InputFile& image, unsigned threads) {
  Bytes level(whole_blocks(static_cast<std::size_t>(image.size() / kBlock * kHash)));
  const auto pieces = static_cast<std::size_t>((image.size() + kPiece - 1) / kPiece);
  parallel_for(threads, pieces, [&](std::size_t index) {
    const std::uint64_t at = std::uint64_t{index} * kPiece;
    Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, image.size() - at)));
    image.read_exactly(at, bytes);
    hash_blocks(bytes, level.data() + at / kBlock * kHash);
  });
  return level;
}

template <class Number>
void put(Bytes& block, std::size_t at, Number number) {  // little-endian
  for (std::size_t i = 0; i < sizeof number; ++i) block[at + i] = static_cast<std::byte>(number >> (8 * i));
}

Bytes super_block(std::uint64_t blocks, const Digest& name) {
  Bytes block(kBlock);
  std::memcpy(block.data(), "verity\0\0", 8);
  put(block, 8, std::uint32_t{1});   // version
  put(block, 12, std::uint32_t{1});  // hash type: what Android does not use
  std::memcpy(block.data() + 16, name.bytes.data(), 16);
  std::memcpy(block.data() + 32, "sha256", 6);
  put(block, 64, std::uint32_t{kBlock});  // of data
  put(block, 68, std::uint32_t{kBlock});  // of hashes
  put(block, 72, blocks);                 // the salt's size and the salt follow: none
  return block;
}

[[noreturn]] void refuse_part_of_block(const std::string& where, std::uint64_t size) {
  throw Error(ErrorCode::Format, {.what = "an image has no hash tree unless it consists of whole blocks",
                                  .where = where,
                                  .expected = "a multiple of 4096 bytes",
                                  .got = std::to_string(size)});
}

}  // namespace

void VerityRoot::add(ByteView piece) {
  if (!rest_.empty()) {
    const std::size_t count = std::min(kBlock - rest_.size(), piece.size());
    rest_.insert(rest_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
    piece = piece.subspan(count);
    if (rest_.size() < kBlock) return;
    put(0, sha256(rest_));
    rest_.clear();
  }
  for (; piece.size() >= kBlock; piece = piece.subspan(kBlock)) put(0, sha256(piece.first(kBlock)));
  rest_.assign(piece.begin(), piece.end());
}

Digest VerityRoot::finish() {
  if (!rest_.empty() || levels_.empty()) refuse_part_of_block("", rest_.size());
  for (std::size_t level = 0;; ++level) {
    if (levels_[level].count == 1) {
      Digest root;
      std::memcpy(root.bytes.data(), levels_[level].hashes.data(), kHash);
      return root;
    }
    if (levels_[level].hashes.empty()) continue;  // whole blocks: the level above has their hashes
    Bytes last = std::move(levels_[level].hashes);
    last.resize(kBlock);
    put(level + 1, sha256(last));
  }
}

void VerityRoot::put(std::size_t level, const Digest& hash) {
  if (level == levels_.size()) levels_.emplace_back();
  Bytes& hashes = levels_[level].hashes;
  const ByteView bytes = std::as_bytes(std::span(hash.bytes));
  hashes.insert(hashes.end(), bytes.begin(), bytes.end());
  ++levels_[level].count;
  if (hashes.size() < kBlock) return;
  const Digest above = sha256(hashes);
  hashes.clear();
  put(level + 1, above);
}

Digest write_verity_tree(const std::filesystem::path& image, const std::filesystem::path& tree, const Digest& name,
                         unsigned threads) {
  const InputFile file(image);
  if (file.size() == 0 || file.size() % kBlock != 0) refuse_part_of_block(image.string(), file.size());
  OutputFile out(tree);
  out.write(super_block(file.size() / kBlock, name));
  if (file.size() == kBlock) {  // the one block's hash is the root
    Bytes block(kBlock);
    file.read_exactly(0, block);
    return sha256(block);
  }
  std::vector<Bytes> levels;
  levels.push_back(lowest_level(file, threads));
  while (levels.back().size() > kBlock) {
    const Bytes& below = levels.back();
    Bytes level(whole_blocks(below.size() / kBlock * kHash));
    hash_blocks(below, level.data());
    levels.push_back(std::move(level));
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) out.write(*level);
  return sha256(levels.back());
}

}  // namespace sealift::bundle
