// SPDX-License-Identifier: Apache-2.0
// The file is sealed before it gets its first reader, and sealed against other seals. It is mapped for reading as well:
// a few bytes of it are then there without a system call, and no page of it is touched for the others.
#include "offline_repo/chunks/checked_chunk.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace sealift::offline_repo {

namespace {

using bundle::ByteView;
using bundle::ChunkBuffer;
using bundle::Descriptor;

constexpr std::size_t kSmall = std::size_t{64} << 10;  // to copy it costs less than a descriptor
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool write_all(int file, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

// Nothing where this kernel cannot make one now.
Descriptor sealed_file(ByteView bytes) {
  Descriptor file(::memfd_create("sealift-chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !write_all(file.get(), bytes)) return Descriptor();
  return ::fcntl(file.get(), F_ADD_SEALS, kSeals) == 0 ? std::move(file) : Descriptor();
}

}  // namespace

CheckedChunk::CheckedChunk(ByteView bytes)
    : file_(bytes.size() < kSmall ? Descriptor() : sealed_file(bytes)), size_(bytes.size()) {
  void* const pages = file_ ? ::mmap(nullptr, bytes.size(), PROT_READ, MAP_SHARED, file_.get(), 0) : MAP_FAILED;
  if (pages != MAP_FAILED) {
    pages_ = pages;
    return;
  }
  file_ = Descriptor();
  memory_ = ChunkBuffer(bytes.size());
  memory_.append(bytes);
}

CheckedChunk::~CheckedChunk() {
  if (pages_ != nullptr) ::munmap(pages_, static_cast<std::size_t>(size_));
}

std::uint64_t CheckedChunk::memory() const {
  constexpr std::uint64_t kPage = ChunkBuffer::kAlignment;
  return (size_ + kPage - 1) / kPage * kPage;
}

ssize_t CheckedChunk::send(int socket, std::uint64_t offset, std::uint64_t count) const {
  const auto size = static_cast<std::size_t>(count);
  if (!file_) return ::send(socket, memory_.view().data() + offset, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  auto from = static_cast<off_t>(offset);
  return ::sendfile(socket, file_.get(), &from, size);
}

std::string_view CheckedChunk::bytes(std::uint64_t offset, std::uint64_t count) const {
  const void* const begin = pages_ != nullptr ? pages_ : memory_.view().data();
  return {static_cast<const char*>(begin) + offset, static_cast<std::size_t>(count)};
}

}  // namespace sealift::offline_repo
