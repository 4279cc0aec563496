// SPDX-License-Identifier: Apache-2.0
// The Python files that a model brings and that `trust_remote_code=True` runs: named in the auto_map of its configs,
// and what those import from beside themselves.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

// `files`: path in the model -> where its bytes are, empty when they are not here yet. A file that is missing, or
// stands in another repository, is a fault; that there is code is a warning which names it.
void check_remote_code(const std::map<std::string, std::filesystem::path>& files, std::vector<std::string>& faults,
                       std::vector<std::string>& warnings);

}  // namespace sealift::packager
