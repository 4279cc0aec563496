// SPDX-License-Identifier: Apache-2.0
// The bytes of one file after the other on their way to the disk: gathered in a few large buffers, and where a file has
// more than one of them, written by a thread while the next bytes are inflated and hashed.
// The buffers are aligned, so that Disk can pass them by the system's cache.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "installer/disk/disk.hpp"

namespace sealift::installer {

// For one thread. Between finish() and the next append(), and when it is destroyed, nobody else touches the disk.
class FileOutput {
 public:
  explicit FileOutput(Disk& disk) : disk_(disk) {}
  FileOutput(const FileOutput&) = delete;
  FileOutput& operator=(const FileOutput&) = delete;
  ~FileOutput();

  void begin(bundle::Descriptor file, std::filesystem::path path);
  // Throws what the disk answered to this piece or to one before it.
  void append(bundle::ByteView bytes);
  // All bytes were given to the disk, and the file was closed.
  void finish();

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

  void hand_over();
  void wait_for_all();
  void write_handed_over();

  Disk& disk_;
  bundle::Descriptor file_;
  std::filesystem::path path_;
  std::array<Buffer, kBuffers> buffers_;  // used in turn
  std::uint64_t filled_ = 0;              // how many were handed over; the one after them is being filled

  std::mutex guard_;  // of what follows
  std::condition_variable changed_;
  std::uint64_t handed_over_ = 0;
  std::uint64_t written_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread writer_;
};

}  // namespace sealift::installer
