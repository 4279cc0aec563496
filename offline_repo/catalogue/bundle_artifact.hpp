// SPDX-License-Identifier: Apache-2.0
// A bundle as an OCI artifact: its seal, chunk list and volumes as layers, so that a pull gives the folder of a bundle.
// A registry names blobs by their SHA-256, which nobody has signed of a volume; so the volumes are read once, through
// the checked payload, when somebody asks for the first time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

inline constexpr std::string_view kArtifactPrefix = "bundles/";  // of the names of repositories

// What a layer of it is, by name, size and digest.
struct ArtifactLayer {
  std::string title, media_type;
  std::uint64_t size = 0;
  bundle::Digest sha256;
};

// The manifest, always the same for the same bundle; below 4 MiB whatever a bundle holds, since it names no entries and
// a bundle has at most 10,000 volumes.
std::string artifact_manifest(const bundle::Manifest& manifest, const std::vector<ArtifactLayer>& layers);

// Safe from several threads.
class BundleArtifact {
 public:
  using InBundle = std::shared_ptr<const bundle::VerifiedBundle>;
  using Text = std::shared_ptr<const std::string>;

  // Never changes.
  struct Parts {
    Text manifest;
    bundle::Digest digest;
    std::map<std::string, Text, std::less<>> texts;          // seal, chunk list, configuration; by SHA-256
    std::map<std::string, ServedFile, std::less<>> volumes;  // likewise
    std::vector<bundle::Entry> entries;                      // of no manifest: what the volumes are
  };

  explicit BundleArtifact(InBundle in) : in_(std::move(in)) {}
  BundleArtifact(const BundleArtifact&) = delete;
  BundleArtifact& operator=(const BundleArtifact&) = delete;

  // Null until the volumes are read, which the first call begins.
  std::shared_ptr<const Parts> parts();
  // Why there will be none; empty: there is no fault so far.
  std::string fault() const;
  // About as long as that takes, at most a minute.
  std::uint64_t seconds_to_read() const;
  // Waits for what parts() began.
  void wait();

 private:
  std::shared_ptr<const Parts> read(const std::stop_token& stop) const;

  const InBundle in_;
  mutable std::mutex guard_;  // of what follows
  std::shared_ptr<const Parts> parts_;
  std::string fault_;
  std::jthread thread_;  // last, so that it ends before what it uses
};

}  // namespace sealift::offline_repo
