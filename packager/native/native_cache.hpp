// SPDX-License-Identifier: Apache-2.0
// Keeps what was read of the ELF files of a wheel, or of the interpreter's tar, between runs: inflating gigabytes again
// for the same tables would be most of the time that `create` takes. Results are only kept for a file whose digest was
// just computed, and only once all files of a wheel were what its RECORD says; so that both hold for the digest for
// ever. A damaged entry counts as none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "packager/files/cache.hpp"
#include "packager/native/native_file.hpp"

namespace sealift::packager {

class NativeCache {
 public:
  // `python` ("3.11") decides where files are installed.
  NativeCache(const Cache& cache, std::string python);

  // What is kept of the file with this digest; `owner` becomes the owner of every file.
  std::optional<std::vector<NativeFile>> read(const bundle::Digest& sha256, const std::string& owner) const;
  void write(const bundle::Digest& sha256, const std::vector<NativeFile>& files) const;

 private:
  std::filesystem::path path(const bundle::Digest& sha256) const;

  Cache cache_;
  std::filesystem::path folder_;
  std::string python_;
};

}  // namespace sealift::packager
