// SPDX-License-Identifier: Apache-2.0
// One owner for every path of a generation: two wheels with the same file would silently overwrite each other, and the
// order of installation would decide which one stays. `create` finds that here, before anything crosses the gap. Where
// their bytes are equal, there is nothing to decide.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sealift/bundle/core/digest.hpp"

namespace sealift::packager {

class PathOwners {
 public:
  // A path with several owners, in the order in which they claimed it.
  struct Contested {
    std::string path;
    std::vector<std::string> owners;
    // Nothing is to be decided: all of them are wheels, and bring the same bytes, or yield to wheels that do.
    bool equal = false;
    std::string natural = {};  // whose file it then is
    std::optional<bundle::Digest> sha256 = {};
    bool yields = false;  // the file of `natural`
  };

  // `path` is relative to the generation's root; `sha256` is of a wheel's file, and `yields` says that nothing is lost
  // where another one's is installed in its place.
  void claim(const std::string& path, const std::string& owner,
             const std::optional<bundle::Digest>& sha256 = std::nullopt, bool yields = false);
  const std::vector<Contested>& contested() const { return contested_; }
  // Takes a contested path from every wheel but `winner`, and returns those wheels.
  std::vector<std::string> give(const std::string& path, const std::string& winner);

  // Throws Conflict when a path has two owners or one owner's file is another's folder, naming each pair of owners with
  // its first path.
  void check() const;

 private:
  struct Conflict {
    std::size_t paths = 0;
    std::string text;                 // of the first
    std::string common = {};          // the path, or the folder that holds all of them
    std::set<std::string> tops = {};  // what of site-packages, or of the root, holds them
  };
  using Conflicts = std::map<std::pair<std::string, std::string>, Conflict>;
  static void add(Conflicts& conflicts, const std::string& path, const std::string& first, const std::string& second,
                  const std::string& note);

  struct Owner {
    std::string name;
    std::optional<bundle::Digest> sha256;
    bool yields;
  };
  std::map<std::string, Owner> owners_;       // the first of each path
  std::map<std::string, std::size_t> index_;  // path -> place in contested_
  std::vector<Contested> contested_;
};

}  // namespace sealift::packager
