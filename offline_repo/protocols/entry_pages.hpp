// SPDX-License-Identifier: Apache-2.0
// The files of bundles as folders that a browser and `wget -m` walk through. All links are relative, and lead downwards
// or up by one folder, so that a mirror has each page once.
#pragma once

#include <optional>
#include <string>

#include "offline_repo/catalogue/entry_list.hpp"
#include "offline_repo/protocols/page_frame.hpp"

namespace sealift::offline_repo {

// In the first folder of a bundle: the digests of all of its files, as sha256sum writes and checks them.
inline constexpr char kSumsFile[] = "SHA256SUMS";

std::string bundle_folders(const EntryLists& lists, const Words& word);
// `folder` without a slash at its end, "" for the bundle's first one. Nothing where no file lies below it.
std::optional<std::string> folder_page(const std::string& bundle, const EntryList& list, const std::string& folder,
                                       const Words& word);

}  // namespace sealift::offline_repo
