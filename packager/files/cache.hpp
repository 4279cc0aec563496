// SPDX-License-Identifier: Apache-2.0
// Files by their SHA-256, kept between runs: CACHE/sha256/<hex>, and CACHE/parts/<hex>.part while one is downloaded.
// The cache is not trusted: what is written of a file is hashed on its way, and what was found out about it before
// counts only if those were the bytes. Its notes (CACHE/chunks, native, built, told) save that, a build, or a warning
// said twice, and are believed only where nobody else can have written them. What is run or built lies there only where
// nobody else can change it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bundle/host/scratch_folder.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

// The SHA-256 of a file; `progress` gets the number of bytes of each piece. Throws Interrupted, Io.
bundle::Digest digest_of_file(const std::filesystem::path& path,
                              const std::function<void(std::uint64_t)>& progress = {});

class Cache {
 public:
  // Creates the folder, marked as a cache for backup programs (CACHEDIR.TAG). What comes into it by way of this value
  // is for a payload whose chunks are digested so.
  explicit Cache(std::filesystem::path root, bundle::DigestAlgorithm payload_digest = bundle::DigestAlgorithm::Sha256);

  // $SEALIFT_CACHE, else $XDG_CACHE_HOME/sealift, else ~/.cache/sealift; of these two none that is another user's.
  static std::filesystem::path default_root();

  const std::filesystem::path& root() const { return root_; }
  bundle::DigestAlgorithm payload_digest() const { return payload_digest_; }
  std::filesystem::path path(const bundle::Digest& digest) const { return root_ / "sha256" / digest.hex(); }
  std::filesystem::path part(const bundle::Digest& digest) const { return root_ / "parts" / (digest.hex() + ".part"); }
  // For folders of one run: on the cache's file system, or, where another user could put other files there, in a
  // temporary folder. What killed runs have left in the cache goes with the next one.
  std::filesystem::path scratch() const { return elsewhere_ ? elsewhere_->path() : root_ / "scratch"; }
  // Where sources are built, each at its own fixed path; as above.
  std::filesystem::path builds() const { return (elsewhere_ ? elsewhere_->path() : root_) / "builds"; }
  bool contains(const bundle::Digest& digest) const;

  // Moves a finished file into the cache; the caller has checked its digest.
  void adopt(const std::filesystem::path& file, const bundle::Digest& digest) const;
  // A new file of the cache with these bytes, whose digest this is.
  void keep(std::string_view bytes, const bundle::Digest& digest) const;

  // Whether this user or root made the folder and those of its notes, and nobody else may write there. If others may,
  // they can lay down a file with the note that would vouch for it, and no note is read.
  bool is_private() const { return private_; }
  // The text of a note; nothing where there is none, or it is larger, or it may be somebody else's.
  std::optional<std::string> read_note(const std::filesystem::path& file, std::uint64_t max_size) const;
  // Writes or replaces a note below the root: what was found out about files, and saves the next run some work. A note
  // that cannot be written ends nothing, since whatever it is about is there; it is counted. Not synced: who reads a
  // note can tell whether it is whole.
  void note(const std::filesystem::path& file, std::string_view text) const;
  // Says, once all is done, that notes could not be written, and why; or that none was believed.
  void warn_of_notes(bundle::Progress& progress) const;

 private:
  struct LostNotes;

  std::filesystem::path root_;
  bundle::DigestAlgorithm payload_digest_;
  bool private_ = false;
  std::shared_ptr<LostNotes> lost_;  // of all copies
  std::shared_ptr<const bundle::ScratchFolder> elsewhere_;
};

}  // namespace sealift::packager
