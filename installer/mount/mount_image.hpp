// SPDX-License-Identifier: Apache-2.0
// The story of `sealift-install mount`: an image, in a file or in a bundle's payload, whose chunk list somebody trusts,
// as a folder whose every byte was checked before a program got it. Nobody has to be root, and nothing is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/verified_bundle.hpp"

namespace sealift::installer {

struct MountOptions {
  std::filesystem::path image;  // a file, or the bundle
  std::filesystem::path folder;
  bundle::Digest digest{};         // of a file's chunk list, from a source that the caller trusts
  std::filesystem::path log;       // gets a line for each fault; empty: the system's log
  std::filesystem::path prefetch;  // a record of a start: what it names is fetched ahead; it is noted anew at the end
  bool everybody = false;          // other users see the folder, too
  std::uint64_t memory = std::uint64_t{64} << 20;  // bytes of chunks that are kept, beside one for each reader
  unsigned patience = 60;                          // seconds that a read waits for the medium
};

struct Mounted {
  std::filesystem::path image;
  std::filesystem::path folder;
  std::string bundle{};          // NAME version N, whose payload has the image; empty: a file of its own
  bundle::Digest digest;         // of the chunk list that each read is held to
  std::uint64_t size = 0;        // bytes of the image
  std::uint64_t names = 0;       // in it
  std::uint64_t prefetched = 0;  // chunks that are fetched ahead
  int process = 0;               // that serves it
};

// Throws Missing, with the command that makes an image, when `path` is a prefix. Throws Usage for any other folder.
void refuse_without_image(const std::filesystem::path& path);

// Mounts, calls `ready`, and returns when the folder is unmounted, or by SIGTERM. Throws Usage, Platform, Missing,
// Conflict, Digest, Format; then nothing is mounted.
void mount_image(const MountOptions& options, const std::function<void(const Mounted&)>& ready);
// The same for the image that a verified bundle carries, whose volumes stay where they are.
void mount_bundle(const bundle::VerifiedBundle& bundle, const MountOptions& options,
                  const std::function<void(const Mounted&)>& ready);

// Ends it. Throws Missing where no image of ours is mounted, Conflict where it is in use.
void unmount_image(const std::filesystem::path& folder);

}  // namespace sealift::installer
