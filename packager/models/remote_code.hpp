// SPDX-License-Identifier: Apache-2.0
// The Python files of a model that `trust_remote_code=True` runs: those named in the auto_map of its configs, and the
// files that they import relatively. `model_check` asks, because a missing file shows only when the model is loaded.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sealift::packager {

// `files`: path in the model -> its place on this machine, empty when it is not here yet. A file that is missing or in
// another repository is a fault; that there is code is a warning that names it.
void check_remote_code(const std::map<std::string, std::filesystem::path>& files, std::vector<std::string>& faults,
                       std::vector<std::string>& warnings);

}  // namespace sealift::packager
