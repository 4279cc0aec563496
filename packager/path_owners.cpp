// SPDX-License-Identifier: Apache-2.0
// Who owns which path; see path_owners.hpp.
#include "packager/path_owners.hpp"

#include "sealift/bundle/error.hpp"

namespace sealift::packager {

using bundle::Error;
using bundle::ErrorCode;

void PathOwners::claim(const std::string& path, const std::string& owner) {
  const auto [found, fresh] = owners_.emplace(path, owner);
  if (!fresh) conflicts_.push_back(path + ": " + found->second + " and " + owner);
}

void PathOwners::check() const {
  std::vector<std::string> conflicts = conflicts_;
  for (const auto& [path, owner] : owners_)
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      if (const auto file = owners_.find(path.substr(0, slash)); file != owners_.end())
        conflicts.push_back(file->first + ": a file of " + file->second + " and a folder of " + owner);
  if (conflicts.empty()) return;
  std::string got;
  for (std::size_t i = 0; i < conflicts.size() && i < 10; ++i) got += (i > 0 ? "; " : "") + conflicts[i];
  if (conflicts.size() > 10) got += "; and " + std::to_string(conflicts.size() - 10) + " more";
  throw Error(ErrorCode::Conflict, {.what = "two packages would install the same path",
                                    .expected = "one owner for every path",
                                    .got = got,
                                    .next = "require only one of these packages"});
}

}  // namespace sealift::packager
