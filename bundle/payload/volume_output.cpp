// SPDX-License-Identifier: Apache-2.0
#include "bundle/payload/volume_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::bundle {

VolumeOutput::VolumeOutput(std::filesystem::path path, Opening opening) : path_(std::move(path)) {
  const int flags = opening == Opening::New ? O_CREAT | O_EXCL : 0;
  fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | flags | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd_) throw_errno("a file cannot be created", path_);
  direct_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW));
}

void VolumeOutput::write(ByteView bytes, std::uint64_t offset) const {
  bool direct = direct_ && bytes.size() % ChunkBuffer::kAlignment == 0 && offset % ChunkBuffer::kAlignment == 0;
  while (!bytes.empty()) {
    const int fd = direct ? direct_.get() : fd_.get();
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EINVAL && std::exchange(direct, false)) continue;
    if (count < 0) throw_errno("a file cannot be written", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
    direct = direct && bytes.size() % ChunkBuffer::kAlignment == 0;  // a short write may leave an odd rest
  }
}

void VolumeOutput::sync() const {
  if (::fsync(fd_.get()) != 0) throw_errno("a file cannot be synced", path_);
}

}  // namespace sealift::bundle
