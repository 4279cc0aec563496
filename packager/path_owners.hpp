// SPDX-License-Identifier: Apache-2.0
// One owner for every path of a generation: two wheels that bring the same file would overwrite each other silently,
// and which one wins depends on the order of installation. Found here, before anything crosses the gap.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace sealift::packager {

class PathOwners {
 public:
  // `path` is relative to the generation's root.
  void claim(const std::string& path, const std::string& owner);

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

  std::map<std::string, std::string> owners_;
  Conflicts conflicts_;
};

}  // namespace sealift::packager
