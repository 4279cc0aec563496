// SPDX-License-Identifier: Apache-2.0
// One chunk whose digest held, as it is kept for all connections: in a memory file that the kernel lets nobody change
// any more, so that its pages go to a socket without being copied or looked at again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/payload/chunk_buffer.hpp"

namespace sealift::offline_repo {

// Safe from several threads.
class CheckedChunk {
 public:
  // Copies the bytes into a sealed memory file (memfd_create(2), F_SEAL_WRITE and the others). Below 64 KiB, and where
  // the kernel has no such files, or no descriptor is left, they are copied into plain memory.
  explicit CheckedChunk(bundle::ByteView bytes);
  CheckedChunk(const CheckedChunk&) = delete;
  CheckedChunk& operator=(const CheckedChunk&) = delete;
  ~CheckedChunk();

  bool in_file() const { return static_cast<bool>(file_); }
  int descriptor() const { return file_.get(); }
  // How many bytes of memory it takes: whole pages.
  std::uint64_t memory() const;
  // Sends at most `count` bytes from `offset` without waiting, by sendfile(2) or send(2); returns what they return.
  // SIGPIPE must be ignored. Needs offset + count within the chunk.
  ssize_t send(int socket, std::uint64_t offset, std::uint64_t count) const;
  // `count` bytes from `offset`, likewise within the chunk; they stay as long as this does.
  std::string_view bytes(std::uint64_t offset, std::uint64_t count) const;

 private:
  bundle::Descriptor file_;
  void* pages_ = nullptr;       // the file, mapped for reading
  bundle::ChunkBuffer memory_;  // where there is no file
  std::uint64_t size_;
};

}  // namespace sealift::offline_repo
