// SPDX-License-Identifier: Apache-2.0
// The files of a bundle as they are stored, each under its path in the manifest: for clients that know no protocol but
// HTTP, and files that no other route has a name for, such as data from a folder.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/served_file.hpp"

namespace sealift::offline_repo {

struct EntryList {
  std::vector<ServedFile> files = {};            // sorted by path
  std::shared_ptr<const std::string> sums = {};  // a line each, as sha256sum writes and checks them
  bundle::Digest sums_sha256 = {};

  // Null when there is none. Lives as long as the list.
  const ServedFile* find(std::string_view path) const;
};

using EntryLists = std::map<std::string, std::shared_ptr<const EntryList>, std::less<>>;  // by the bundle's name

// Without entries of `rotten`, entries that a delta leaves out, and entries that are stored compressed or as a patch,
// of which no range could be sent.
std::shared_ptr<const EntryList> entry_list_of(const std::shared_ptr<const bundle::VerifiedBundle>& in,
                                               const std::set<std::string>& rotten = {});

}  // namespace sealift::offline_repo
