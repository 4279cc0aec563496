// SPDX-License-Identifier: Apache-2.0
// Compares folders on disk with what should stand in them, path by path, and says what differs. The store's items and
// the generations are looked at by the same code: a Layout is what either should be.
// A file that many names share is hashed once and, when it is wrong, found once, with all of its names.
#pragma once

#include <sys/types.h>

#include <set>

#include "installer/layout/layout.hpp"
#include "installer/prefix/prefix.hpp"
#include "installer/host/progress.hpp"

namespace sealift::installer {

struct Deviation {
  enum class Kind {
    Changed,  // other bytes, or another kind of thing, or another link
    Missing,
    Extra,
    Mode,
    Owner,
    Unknown,  // it could not be looked at
    Outside,  // a library from elsewhere is loaded
    Broken,   // the interpreter does not do what it is for
  };

  Kind kind = Kind::Changed;
  std::vector<std::string> paths;  // below the prefix; all names of one file
  std::string expected;
  std::string got;
};

std::string_view name_of(Deviation::Kind kind);

// A folder and what must stand in it; `own` are names that are neither checked nor extra.
struct Tree {
  std::filesystem::path root;
  Layout layout;
  std::set<std::string> own;
};

class Examiner {
 public:
  // Every path must belong to `owner`. Findings name paths below the prefix.
  Examiner(const Prefix& prefix, uid_t owner, unsigned threads, Progress& progress)
      : prefix_(prefix), owner_(owner), threads_(threads), progress_(progress) {}

  // Hashes with all threads, the largest file first; memory is a buffer a thread beside the trees.
  void examine(const std::vector<Tree>& trees);
  void add(Deviation finding) { findings_.push_back(std::move(finding)); }

  std::uint64_t files() const { return files_; }  // paths that should be files
  std::uint64_t bytes() const { return bytes_; }  // that were hashed
  std::vector<Deviation> take() { return std::move(findings_); }

 private:
  using FileId = std::pair<dev_t, ino_t>;
  struct Look;

  void look(const Tree& tree, std::vector<Look>& looks);
  void look_for_extra(const Tree& tree);
  void hash(std::vector<Look>& looks);
  void judge(const Look& look);
  std::string below_prefix(const std::filesystem::path& path) const;

  const Prefix& prefix_;
  uid_t owner_;
  unsigned threads_;
  Progress& progress_;
  std::vector<Deviation> findings_;
  std::map<FileId, bundle::Digest> digests_;  // of files that were hashed
  std::map<FileId, std::size_t> found_;       // files with a finding
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace sealift::installer
