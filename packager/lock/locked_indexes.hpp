// SPDX-License-Identifier: Apache-2.0
// Which indexes a resolution asked, as the lock keeps it: read and written by lock.cpp, made from [python] by
// python_inputs. A build that is repeated asks the same ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packager/host/http_logins.hpp"

namespace sealift::packager {

// Without passwords; empty where uv's own default was asked.
struct LockedIndexes {
  std::string default_index;               // "NAME=URL" or "URL"
  std::vector<std::string> others;         // "NAME=URL" or "URL", in the order in which they were asked
  std::string strategy;                    // uv's --index-strategy
  std::string torch_backend = {};          // uv's --torch-backend, of which each has an index of PyTorch's
  std::vector<std::string> in_files = {};  // options of the job's requirements files, such as "--extra-index-url URL"
  std::vector<std::filesystem::path> login_files = {};  // of the job, with logins for indexes; absolute once read
  std::vector<std::string> variable_addresses = {};     // "https://host/${TOKEN}": how addresses of wheels begin
  std::vector<std::string> signed_pages = {};           // pages whose links are asked anew: they hold for minutes

  bool operator==(const LockedIndexes&) const = default;
};

// Arguments of uv that name the indexes.
std::vector<std::string> index_words(const LockedIndexes& indexes);

// Who we are for the servers of these indexes: from the variables of each, and from the files that hold logins, as far
// as they are there.
HttpLogins index_logins(const LockedIndexes& indexes);

// What somebody should know before they rely on these indexes: answers that can be changed on the way, and dependency
// confusion.
std::vector<std::string> index_warnings(const LockedIndexes& indexes);

}  // namespace sealift::packager
