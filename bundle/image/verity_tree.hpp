// SPDX-License-Identifier: Apache-2.0
// The hash tree by which the kernel's dm-verity checks each 4 KiB of an image when it is read: the file that
// `veritysetup format --salt=-` makes, byte for byte. Whoever trusts the root hash trusts the whole image.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::bundle {

// Writes the tree of `image`, whose size is a multiple of 4 KiB, into the new file `tree`, and returns the root hash:
// SHA-256, no salt. `name` gives the tree its UUID. Throws Format, Io, Space.
Digest write_verity_tree(const std::filesystem::path& image, const std::filesystem::path& tree, const Digest& name,
                         unsigned threads);

// The root hash alone, of bytes that come in order; keeps a block for each level of the tree.
class VerityRoot {
 public:
  void add(ByteView piece);
  // Called once, last. Throws Format unless all that was added is whole blocks, one at least.
  Digest finish();

 private:
  struct Level {
    Bytes hashes;             // that are not a block yet
    std::uint64_t count = 0;  // of all hashes of this level
  };

  void put(std::size_t level, const Digest& hash);

  Bytes rest_;  // less than a block
  std::vector<Level> levels_;
};

}  // namespace sealift::bundle
