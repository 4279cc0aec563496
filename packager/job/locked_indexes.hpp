// SPDX-License-Identifier: Apache-2.0
// Which indexes a resolution asked, as the lock keeps it: read and written by lock.cpp, made from [python] by
// python_inputs.
#pragma once

#include <string>
#include <vector>

namespace sealift::packager {

// Without passwords; empty where uv's own default was asked.
struct LockedIndexes {
  std::string default_index;
  std::vector<std::string> others;         // "NAME=URL" or "URL", in the order in which they were asked
  std::string strategy;                    // uv's --index-strategy
  std::string torch_backend = {};          // uv's --torch-backend, of which each has an index of PyTorch's
  std::vector<std::string> in_files = {};  // options of the job's requirements files, such as "--extra-index-url URL"

  bool operator==(const LockedIndexes&) const = default;
};

}  // namespace sealift::packager
