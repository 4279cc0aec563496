// SPDX-License-Identifier: Apache-2.0
// The mirror of payload_reader: a byte stream in, volumes and the chunk list out, each byte hashed once on its way, by
// chunk_workers.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "sealift/bundle/payload/chunk_workers.hpp"
#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/manifest/manifest.hpp"

namespace sealift::bundle {

// A new file written from start to end; nothing that exists is overwritten.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path, mode_t mode = 0644) : path_(std::move(path)) {
    fd_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd_) throw_errno("a file cannot be created", path_);
  }

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  void write(ByteView bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_errno("a file cannot be written", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      size_ += static_cast<std::uint64_t>(count);
    }
  }
  // Durable once this returns.
  void sync() const {
    if (::fsync(fd_.get()) != 0) throw_errno("a file cannot be synced", path_);
  }

 private:
  std::filesystem::path path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

inline void write_text(const std::filesystem::path& path, std::string_view text, mode_t mode = 0644) {
  OutputFile file(path, mode);
  file.write(as_bytes(text));
  file.sync();
}

class PayloadWriter {
 public:
  // Volumes of at most `volume_size` bytes, rounded down to whole chunks; 0: one volume.
  PayloadWriter(std::filesystem::path folder, std::string stem, std::uint64_t chunk_size, std::uint64_t volume_size,
                DigestAlgorithm digest = DigestAlgorithm::Sha256)
      : folder_(std::move(folder)),
        stem_(std::move(stem)),
        volume_size_(volume_size / chunk_size * chunk_size),
        workers_(static_cast<std::size_t>(chunk_size), digest) {
    payload_.chunk_size = chunk_size;
    payload_.digest = digest;
    if (volume_size != 0 && volume_size_ == 0)
      throw Error(ErrorCode::Usage, {.what = "a volume cannot be smaller than a chunk",
                                     .expected = "at least " + std::to_string(chunk_size) + " bytes",
                                     .got = std::to_string(volume_size) + " bytes"});
  }

  std::uint64_t size() const { return payload_.size; }

  void append(ByteView bytes) {
    payload_.size += bytes.size();
    while (!bytes.empty()) {
      if (!chunk_) chunk_ = workers_.take();
      const ByteView piece = bytes.first(std::min(chunk_->room(), bytes.size()));
      chunk_->append(piece);
      if (chunk_->room() == 0) flush();
      bytes = bytes.subspan(piece.size());
    }
  }

  // Writes the chunk list and makes everything durable. The writer is used up.
  Payload finish() {
    if (chunk_) flush();
    close_volume();
    const ByteView chunk_list = std::as_bytes(std::span(workers_.finish()));
    payload_.chunk_list_digest = digest_of(chunk_list, payload_.digest);
    write_text(folder_ / (stem_ + ".chunks"), as_text(chunk_list));
    return std::move(payload_);
  }

 private:
  void flush() {
    if (volume_ && volume_size_ != 0 && payload_.volumes.back().size == volume_size_) close_volume();
    if (!volume_) open_volume();
    std::uint64_t& size = payload_.volumes.back().size;
    const std::uint64_t offset = std::exchange(size, size + chunk_->size());
    workers_.put(*std::exchange(chunk_, std::nullopt), volume_, offset);
  }
  void open_volume() {
    char number[16];
    std::snprintf(number, sizeof number, ".vol%03zu", payload_.volumes.size() + 1);
    payload_.volumes.push_back({.name = stem_ + number, .size = 0});
    volume_ = std::make_shared<VolumeFile>(folder_ / payload_.volumes.back().name);
  }
  void close_volume() {
    if (!volume_) return;
    workers_.finish();
    volume_->sync();
    volume_.reset();
  }

  std::filesystem::path folder_;
  std::string stem_;
  std::uint64_t volume_size_;
  Payload payload_;
  std::optional<ChunkBuffer> chunk_;  // what is being filled
  std::shared_ptr<const VolumeFile> volume_;
  ChunkWorkers workers_;
};

}  // namespace sealift::bundle
