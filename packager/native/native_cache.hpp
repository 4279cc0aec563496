// SPDX-License-Identifier: Apache-2.0
// What was read of the ELF files of a wheel, or of the interpreter's tar, kept beside it: inflating gigabytes to see
// the same tables again would be most of the time that `create` takes. Only a file whose digest was just computed may
// be kept, so what is kept under a digest belongs to it; a damaged file counts as none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/native/native_file.hpp"

namespace sealift::packager {

class NativeCache {
 public:
  // `python` is like "3.11": it decides where files come to lie.
  NativeCache(const Cache& cache, std::string python);

  // Of the file with this digest; all are said to be `owner`'s.
  std::optional<std::vector<NativeFile>> read(const bundle::Digest& sha256, const std::string& owner) const;
  void write(const bundle::Digest& sha256, const std::vector<NativeFile>& files) const;

 private:
  std::filesystem::path path(const bundle::Digest& sha256) const;

  std::filesystem::path folder_;
  std::string python_;
};

}  // namespace sealift::packager
