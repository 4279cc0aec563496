// SPDX-License-Identifier: Apache-2.0
#include "sealift/bundle/core/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sealift::bundle {

OutputFile::OutputFile(std::filesystem::path path, mode_t mode) : path_(std::move(path)) {
  fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd_) throw_errno("a file cannot be created", path_);
}

void OutputFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("a file cannot be written", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    size_ += static_cast<std::uint64_t>(count);
  }
}

void OutputFile::sync() const {
  if (::fsync(fd_.get()) != 0) throw_errno("a file cannot be synced", path_);
}

void write_text(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  OutputFile file(path, mode);
  try {
    file.write(as_bytes(text));
    file.sync();
  } catch (...) {  // half of a key or of a signature has no name
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace sealift::bundle
