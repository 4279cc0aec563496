// SPDX-License-Identifier: Apache-2.0
// Writes one file after the other: bytes are gathered in a few large buffers, and a file of more than one buffer is
// written by a thread while the next bytes are inflated and hashed. The buffers are aligned, so that Disk can bypass
// the page cache.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "installer/disk/disk.hpp"
#include "installer/disk/stamp.hpp"

namespace sealift::installer {

// For one thread. After finish() and until the next append(), and once destroyed, it does not touch the disk.
class FileOutput {
 public:
  explicit FileOutput(Disk& disk) : disk_(disk) {}
  FileOutput(const FileOutput&) = delete;
  FileOutput& operator=(const FileOutput&) = delete;
  ~FileOutput();

  void begin(bundle::Descriptor file, std::filesystem::path path);
  // Throws the disk's error for this piece or for an earlier one.
  void append(bundle::ByteView bytes);
  // Returns once all bytes are written and the file is closed, with its stamp from before the close.
  Stamp finish();

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;
  static constexpr std::size_t kBuffers = 4;

  struct Freer {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Buffer {
    std::unique_ptr<std::byte, Freer> memory{};
    std::size_t size = 0;
  };

  void submit();  // the buffer that was filled; returns once the next one is free
  bool has_writer();
  void wait_for_all();
  void write_submitted();

  Disk& disk_;
  bundle::Descriptor file_;
  std::filesystem::path path_;
  std::array<Buffer, kBuffers> buffers_;  // used in turn
  std::uint64_t filled_ = 0;              // how many were submitted; the next one is being filled

  std::mutex guard_;  // of what follows
  std::condition_variable changed_;
  std::uint64_t submitted_ = 0;
  std::uint64_t written_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread writer_;
};

}  // namespace sealift::installer
