// SPDX-License-Identifier: Apache-2.0
// Whether a model will load without a network, and what code loading it may run. `lock` checks the files that are
// already here, so that nobody waits for gigabytes in vain; `create` checks all of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "packager/tables/model.hpp"
#include "sealift/bundle/host/progress.hpp"

namespace sealift::packager {

struct ModelReport {
  std::vector<std::string> faults;    // why the model must not be packed as it is
  std::size_t faults_of_names = 0;    // of these, the first ones: two paths that are one elsewhere
  std::vector<std::string> warnings;  // what people should know
};

// Where a file is on this machine; an empty path when it is not here yet, and only its name is checked.
using LocateFile = std::function<std::filesystem::path(const LockedModel&, const LockedFile&)>;

ModelReport check_model(const LockedModel& model, const LocateFile& locate);

// What somebody can do whose folder has names that no bundle can have, without losing a file.
std::string tar_remedy(const std::filesystem::path& folder);

// Prints the warnings; throws Format with the faults of all models together.
void require_sound(const std::vector<LockedModel>& models, const LocateFile& locate, bundle::Progress& progress);

}  // namespace sealift::packager
