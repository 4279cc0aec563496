// SPDX-License-Identifier: Apache-2.0
// The mirror of payload_reader: a byte stream in, volumes and the chunk list out, each byte hashed once on its way, by
// chunk_workers.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "sealift/bundle/core/digest.hpp"
#include "sealift/bundle/core/file.hpp"
#include "sealift/bundle/manifest/manifest.hpp"
#include "sealift/bundle/payload/chunk_workers.hpp"

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

  // Takes back what was appended behind the first `size` bytes, as if it had never been.
  void cut_back(std::uint64_t size) {
    const std::uint64_t in_volumes = workers_.finish().size() * payload_.chunk_size;
    if (size < in_volumes)
      cut_volumes(size, in_volumes);
    else if (chunk_)
      chunk_->shorten(static_cast<std::size_t>(size - in_volumes));
    payload_.size = size;
  }

  // Writes the chunk list and makes everything durable. The writer is used up.
  Payload finish() {
    if (chunk_ && !chunk_->empty()) flush();
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

  // Volumes keep whole chunks; what is left of a chunk is read back, to be filled up again.
  void cut_volumes(std::uint64_t size, std::uint64_t end) {
    const std::uint64_t whole = size / payload_.chunk_size * payload_.chunk_size;
    close_volume();
    for (; end - payload_.volumes.back().size > whole; payload_.volumes.pop_back()) {
      end -= payload_.volumes.back().size;
      std::filesystem::remove(folder_ / payload_.volumes.back().name);
    }
    Volume& last = payload_.volumes.back();
    const std::filesystem::path path = folder_ / last.name;
    last.size = whole - (end - last.size);
    if (!chunk_) chunk_ = workers_.take();
    InputFile(path).read_exactly(last.size, chunk_->resize(static_cast<std::size_t>(size - whole)));
    std::filesystem::resize_file(path, last.size);
    volume_ = std::make_shared<VolumeFile>(path, VolumeFile::Opening::Again);
    workers_.forget_after(static_cast<std::size_t>(whole / payload_.chunk_size));
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
