// SPDX-License-Identifier: Apache-2.0
// The image that a bundle carries: as a file of its own, and as what one that was made here must equal.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "installer/disk/disk.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

// What is in an image, and how large it is.
struct ImageSums {
  std::uint64_t bytes = 0;  // of its files
  std::uint64_t files = 0, folders = 0, links = 0;
};

// Writes the carried `image` into the open file, from checked chunks, and returns what is in it. Throws Format for
// anything but an image of ours, Digest, Space, Io.
ImageSums copy_carried(const bundle::VerifiedBundle& bundle, const bundle::Entry& image, const bundle::Descriptor& file,
                       const std::filesystem::path& path, Disk& disk, bundle::Progress& progress);

// Throws Digest unless the file is the carried image, byte for byte: `chunks` are its digests (image_chunks.hpp).
void require_carried(const bundle::VerifiedBundle& bundle, const bundle::Entry& image,
                     const std::filesystem::path& file, const std::vector<bundle::Digest>& chunks, unsigned threads);

}  // namespace sealift::installer
