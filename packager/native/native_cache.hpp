// SPDX-License-Identifier: Apache-2.0
// Keeps what was read of the ELF files of a wheel, or of the interpreter's tar, between runs: inflating gigabytes again
// for the same tables would be most of the time that `create` takes. Results are only kept once all files of a wheel
// were what its RECORD says. Reading hashes no wheel, so a result first holds for the file as it lay there, and nobody
// may have touched it since; once the bundle is written, which hashes every byte, it holds for the digest for ever. A
// damaged entry counts as none.
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

  // A file of the cache that is about to be read, and how it lies there now.
  struct Reading {
    bundle::Digest sha256;  // its name
    std::string stamp;      // empty: unreadable
  };
  Reading begin(const bundle::Digest& sha256) const;
  // Keeps what was read of it for as long as it lies there untouched.
  void end(const Reading& reading, const std::vector<NativeFile>& files) const;
  // The file with this name, untouched since it was read, has this digest: what was read of it is kept for ever.
  void confirm(const bundle::Digest& sha256) const;

 private:
  std::filesystem::path path(const bundle::Digest& sha256) const;
  std::filesystem::path unconfirmed_path(const bundle::Digest& sha256) const;
  // The text that `end` wrote, without the stamp; nothing where the file was touched.
  std::optional<std::string> unconfirmed(const bundle::Digest& sha256) const;

  Cache cache_;
  std::filesystem::path folder_;
  std::string python_;
};

}  // namespace sealift::packager
