// SPDX-License-Identifier: Apache-2.0
// A layout's files, read and held to their digests by a thread of its own while another one writes the image: who
// compresses never waits for a hash. The order, and so the image, is the same.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "installer/layout/layout.hpp"
#include "sealift/bundle/core/byte_source.hpp"

namespace sealift::installer {

class FilesAhead {
 public:
  // Reads `files`, which outlive this, one after the other; a few mebibytes ahead of read().
  explicit FilesAhead(std::vector<const Place*> files);
  FilesAhead(const FilesAhead&) = delete;
  FilesAhead& operator=(const FilesAhead&) = delete;
  ~FilesAhead();

  // The next file's bytes. Throws Digest for one that was changed since it was unpacked, before its last
  // piece is given; Io.
  void read(const bundle::ByteSink& sink);

 private:
  static constexpr std::size_t kPieces = 16;
  struct Piece {
    bundle::Bytes buffer;  // allocated once
    std::size_t size = 0;
    bool last = false;           // of its file
    std::exception_ptr failure;  // in place of bytes; nothing follows it
  };

  void read_all();
  void read_place(const Place& place);
  void read_source(const Place& place);
  Piece& free_piece();
  void give();  // the piece that free_piece() gave

  const std::vector<const Place*> files_;
  std::array<Piece, kPieces> pieces_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::uint64_t filled_ = 0, emptied_ = 0;  // pieces, since the beginning
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace sealift::installer
