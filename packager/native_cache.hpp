// SPDX-License-Identifier: Apache-2.0
// What was read of a wheel's ELF files, kept beside the wheel: inflating gigabytes to see the same tables again would
// be most of the time that `create` takes. Only a wheel whose digest was just computed may be kept, so what is kept
// under a digest belongs to it; a damaged file counts as none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packager/cache.hpp"
#include "packager/native_files.hpp"

namespace sealift::packager {

class NativeCache {
 public:
  // `python` is like "3.11": it decides where files come to lie.
  NativeCache(const Cache& cache, std::string python);

  std::optional<std::vector<NativeFile>> read(const LockedWheel& wheel) const;
  void write(const LockedWheel& wheel, const std::vector<NativeFile>& files) const;

 private:
  std::filesystem::path path(const LockedWheel& wheel) const;

  std::filesystem::path folder_;
  std::string python_;
};

}  // namespace sealift::packager
