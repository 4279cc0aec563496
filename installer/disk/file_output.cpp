// SPDX-License-Identifier: Apache-2.0
// A ring of buffers between two threads. A small file fits into its first buffer and is one write by the caller; the
// writer thread is started by the first file that needs it and lives as long as the ring.
#include "installer/disk/file_output.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

namespace sealift::installer {

namespace {
constexpr std::size_t kAlignment = 4096;
}

FileOutput::~FileOutput() {
  if (!writer_.joinable()) return;
  {
    const std::lock_guard lock(guard_);
    stop_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

void FileOutput::begin(bundle::Descriptor file, std::filesystem::path path) {
  file_ = std::move(file);
  path_ = std::move(path);
}

void FileOutput::append(bundle::ByteView bytes) {
  while (!bytes.empty()) {
    Buffer& buffer = buffers_[filled_ % kBuffers];
    if (!buffer.memory) {
      buffer.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBuffer)));
      if (!buffer.memory) throw std::bad_alloc();
    }
    const bundle::ByteView piece = bytes.first(std::min(bytes.size(), kBuffer - buffer.size));
    std::memcpy(buffer.memory.get() + buffer.size, piece.data(), piece.size());
    buffer.size += piece.size();
    bytes = bytes.subspan(piece.size());
    if (buffer.size == kBuffer) submit();
  }
}

// Returns once the next buffer is free.
void FileOutput::submit() {
  ++filled_;
  if (!has_writer()) {
    submitted_ = filled_;
    Buffer& buffer = buffers_[written_++ % kBuffers];
    return disk_.write(file_, path_, {buffer.memory.get(), std::exchange(buffer.size, 0)});
  }
  std::unique_lock lock(guard_);
  submitted_ = filled_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return failure_ || filled_ - written_ < kBuffers; });
  if (failure_) std::rethrow_exception(failure_);
}

// From the first call on; where the system gives no more threads, the caller writes.
bool FileOutput::has_writer() {
  if (!writer_.joinable()) try {
      writer_ = std::thread([this] { write_submitted(); });
    } catch (const std::system_error&) {
    }
  return writer_.joinable();
}

void FileOutput::wait_for_all() {
  if (!writer_.joinable()) return;
  std::unique_lock lock(guard_);
  changed_.wait(lock, [&] { return failure_ || written_ == filled_; });
  if (failure_) std::rethrow_exception(failure_);
}

Stamp FileOutput::finish() {
  wait_for_all();
  Buffer& last = buffers_[filled_ % kBuffers];
  if (last.size != 0) disk_.write(file_, path_, {last.memory.get(), std::exchange(last.size, 0)});
  struct stat status {};
  const Stamp stamp = file_ && ::fstat(file_.get(), &status) == 0 ? stamp_of(status) : Stamp{};
  disk_.close(std::move(file_), path_);
  return stamp;
}

void FileOutput::write_submitted() {
  std::unique_lock lock(guard_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || written_ < submitted_; });
    if (stop_) return;
    Buffer& buffer = buffers_[written_ % kBuffers];
    lock.unlock();
    std::exception_ptr failure;
    try {
      disk_.write(file_, path_, {buffer.memory.get(), std::exchange(buffer.size, 0)});
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++written_;
    failure_ = failure;
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace sealift::installer
