// SPDX-License-Identifier: Apache-2.0
// The documents that ModelScope's clients read of models and data sets, and the pages of its lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "offline_repo/catalogue/hub_repositories.hpp"

namespace sealift::offline_repo {

std::string modelscope_info_json(const ServedRepository& repository);
// Branches; clients look for theirs, and for when it was made.
std::string modelscope_revisions_json(const ServedRepository& repository);

// Which part of a list is asked for. Clients ask on until a page is not full.
struct ModelScopePage {
  std::uint64_t number = 1;
  std::uint64_t size = 0;  // 0: all of it, on one page
};
// As the query has it; both numbers are below 10^9. Nothing when one of them is no such number, or 0.
std::optional<ModelScopePage> modelscope_page(const std::string& number, const std::string& size);

// Files and folders below the folder `root` ("": all), those of folders below it where `recursive`. Nothing unless
// `root` is a folder.
std::optional<std::string> modelscope_files_json(const HubCommit& commit, const std::string& root, bool recursive,
                                                 const ModelScopePage& page = {});
std::string modelscope_error_json(const std::string& why);

}  // namespace sealift::offline_repo
