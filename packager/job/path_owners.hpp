// SPDX-License-Identifier: Apache-2.0
// One owner for every path of a generation: two wheels that bring the same file would overwrite each other silently,
// and which one wins depends on the order of installation. Found here, before anything crosses the gap.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sealift::packager {

class PathOwners {
 public:
  // A path with several owners, in the order of their claims.
  struct Contested {
    std::string path;
    std::vector<std::string> owners;
  };

  // `path` is relative to the generation's root.
  void claim(const std::string& path, const std::string& owner);
  const std::vector<Contested>& contested() const { return contested_; }
  // Of a contested path: takes it from every wheel but `winner`, and returns these.
  std::vector<std::string> give(const std::string& path, const std::string& winner);

  // Throws Conflict naming all owners that collide, with the first path of each two, when a path has two, or when one's
  // file is another's folder.
  void check() const;

 private:
  struct Conflict {
    std::size_t paths = 0;
    std::string text;  // of the first
  };
  using Conflicts = std::map<std::pair<std::string, std::string>, Conflict>;
  static void add(Conflicts& conflicts, const std::string& path, const std::string& first, const std::string& second,
                  const std::string& note);

  std::map<std::string, std::string> owners_;  // the first of each path
  std::map<std::string, std::size_t> index_;   // path -> place in contested_
  std::vector<Contested> contested_;
};

}  // namespace sealift::packager
