// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install image`: an environment as one SquashFS file, from a prefix or from a bundle. Both are
// laid out by the code that installs, so both give the same bytes; and so does the copy of the image that a bundle
// carries, which `sealift-pack create` has this program make.
#pragma once

#include <filesystem>
#include <optional>

#include "installer/disk/disk.hpp"
#include "installer/prefix/prefix.hpp"
#include "sealift/bundle/host/progress.hpp"
#include "sealift/bundle/payload/volumes.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct MadeImage {
  std::string name;  // the bundle's
  std::uint64_t version = 0;
  bundle::Digest identity;  // of the bundle's manifest
  std::vector<std::string> warnings;
  std::filesystem::path file;
  bool carried = false;                // its bytes are those of the image in the bundle
  bundle::Digest digest;               // of its chunk list, FILE.chunks
  std::optional<bundle::Digest> root;  // of its hash tree, FILE.verity, where one was asked for
  std::uint64_t size = 0;              // bytes of the image
  std::uint64_t bytes = 0;             // of the files in it
  std::uint64_t files = 0;
  std::uint64_t folders = 0;
  std::uint64_t links = 0;
  std::vector<bundle::MendedVolume> mended;  // what was damaged on the medium, and is right in the image
};

struct ImageRequest {
  std::filesystem::path file;
  bool verity = false;   // with a hash tree for the kernel's dm-verity
  bool rebuild = false;  // of a bundle that carries its image: make it again, and compare
  unsigned threads = 1;
};

// Of the current generation of `prefix`. Each file is held to the digest that its item's record has. Throws Conflict
// when the file, its list or its tree is there, Digest for a file that was changed since it was unpacked, Space, Io.
MadeImage image_of_prefix(const Prefix& prefix, const ImageRequest& request, Disk& disk, bundle::Progress& progress);

// Of a verified bundle: a copy of the image that it carries. Of one that carries none, or to rebuild it: unpacks what
// the bundle places beside the file, into a folder that is gone at the end. Throws also Usage for a rebuild of what is
// not carried, Missing for a rebuild of a bundle that carries nothing but the image, and Digest for an image that is
// another one than is carried.
MadeImage image_of_bundle(const bundle::VerifiedBundle& bundle, const ImageRequest& request, Disk& disk,
                          bundle::Progress& progress);

}  // namespace sealift::installer
