// SPDX-License-Identifier: Apache-2.0
// Compares folders on disk with their expected trees, path by path, and lists what differs. Store items and generations
// are compared by the same code, since a Layout describes either.
// A file with many names is hashed once and, when it is wrong, reported once, with all of its names.
#pragma once

#include <sys/types.h>

#include <map>
#include <set>

#include "installer/doctor/expected_tree.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::installer {

struct Deviation {
  enum class Kind {
    Changed,  // other bytes, or another kind of thing, or another link
    Missing,
    Extra,
    Mode,
    Owner,
    Unknown,  // it could not be examined
    Outside,  // a library from outside the generation is loaded
    Broken,   // the interpreter fails to import what the bundle names
  };

  Kind kind = Kind::Changed;
  std::vector<std::string> paths;  // below the prefix; all names of one file
  std::string expected;
  std::string got;
};

std::string_view name_of(Deviation::Kind kind);

class TreeComparer {
 public:
  // Every path must belong to `owner`. Findings name paths below the prefix.
  TreeComparer(const Prefix& prefix, uid_t owner, unsigned threads, bundle::Progress& progress)
      : prefix_(prefix), owner_(owner), threads_(threads), progress_(progress) {}

  // Hashes with all threads, the largest file first. Memory: one buffer a thread, beside the trees.
  void compare(const std::vector<ExpectedTree>& trees);
  void add(Deviation finding) { findings_.push_back(std::move(finding)); }

  std::uint64_t files() const { return files_; }  // paths that should be files
  std::uint64_t bytes() const { return bytes_; }  // that were hashed
  std::vector<Deviation> take() { return std::move(findings_); }

 private:
  using FileId = std::pair<dev_t, ino_t>;
  struct FoundPath;

  void compare_paths(const ExpectedTree& tree, std::vector<FoundPath>& paths);
  void find_extra(const ExpectedTree& tree);
  void hash_files(std::vector<FoundPath>& paths);
  void compare_contents(const FoundPath& seen);
  std::string below_prefix(const std::filesystem::path& path) const;

  const Prefix& prefix_;
  uid_t owner_;
  unsigned threads_;
  bundle::Progress& progress_;
  std::vector<Deviation> findings_;
  std::map<FileId, bundle::Digest> digests_;        // of files that were hashed
  std::map<FileId, std::size_t> findings_by_file_;  // index into findings_
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace sealift::installer
