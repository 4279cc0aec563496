// SPDX-License-Identifier: Apache-2.0
// Whether a model will load where nothing can be fetched any more, and what loading it may run. Asked by `lock` with
// the files that are there already, so that nobody waits for gigabytes in vain, and by `create` with all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "packager/host/console.hpp"
#include "packager/job/model.hpp"

namespace sealift::packager {

struct ModelReport {
  std::vector<std::string> faults;    // it must not be packed like this
  std::vector<std::string> warnings;  // people should know
};

// The file's bytes on this machine; an empty path when they are not here yet, and the file goes by its name.
using LocateFile = std::function<std::filesystem::path(const LockedModel&, const LockedFile&)>;

ModelReport examine(const LockedModel& model, const LocateFile& locate);

// Says the warnings; throws Format with the faults of all models together.
void require_sound(const std::vector<LockedModel>& models, const LocateFile& locate, Console& console);

}  // namespace sealift::packager
