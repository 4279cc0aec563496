// SPDX-License-Identifier: Apache-2.0
// One owner for every path of a generation: two wheels that bring the same file would overwrite each other silently,
// and which one wins depends on the order of installation. Found here, before anything crosses the gap.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

class PathOwners {
 public:
  // `path` is relative to the generation's root.
  void claim(const std::string& path, const std::string& owner);

  // Throws Conflict naming paths and owners when a path has two, or when one's file is another's folder.
  void check() const;

 private:
  std::map<std::string, std::string> owners_;
  std::vector<std::string> conflicts_;
};

}  // namespace sealift::packager
