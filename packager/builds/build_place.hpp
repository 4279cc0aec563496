// SPDX-License-Identifier: Apache-2.0
// The folder that a source is built in. It has the same path each time, because compilers write it into their output;
// so only one build may use it, also of several processes.
#pragma once

#include <filesystem>

#include "packager/files/cache.hpp"
#include "sealift/bundle/core/file.hpp"

namespace sealift::packager {

class BuildPlace {
 public:
  // Waits for another builder of this source; throws Interrupted.
  BuildPlace(const Cache& cache, const bundle::Digest& source);
  BuildPlace(const BuildPlace&) = delete;
  BuildPlace& operator=(const BuildPlace&) = delete;
  ~BuildPlace();  // removes it; what an interrupt leaves is a folder of CACHE/scratch, which the next run clears

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_, scratch_;
  bundle::Descriptor lock_;
};

}  // namespace sealift::packager
