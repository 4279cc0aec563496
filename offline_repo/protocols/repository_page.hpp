// SPDX-License-Identifier: Apache-2.0
// The page of a model or data set, at the address that people know from its hub: what it is, its licence, how to get
// it, its commits, its files with sizes and digests, and its card.
#pragma once

#include <string>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/page_frame.hpp"

namespace sealift::offline_repo {

// "org/name", of a data set "datasets/org/name": below a view's address, escaped.
std::string repository_address(const bundle::HubName& name);
// Where a client gets a file of this commit, likewise.
std::string file_address(const bundle::HubName& name, const HubCommit& commit, const std::string& path);

// `repository` and `commit` are of the catalogue. `root`: the path of the view, as view_root of routes/answers.hpp
// gives it.
std::string repository_page(const Catalogue& catalogue, const ServedRepository& repository, const HubCommit& commit,
                            const PageAddress& address, const std::string& root, const Words& word);

}  // namespace sealift::offline_repo
