// SPDX-License-Identifier: Apache-2.0
// Random access to bytes, wherever they come from: a file (packager) or verified payload (installer, repository).
// The readers of zip and ELF are written against this, so that both sides of the gap run the same checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "sealift/bundle/core/file.hpp"

namespace sealift::bundle {

// Takes bytes that arrive in order, piece by piece; a piece is valid during the call only.
using ByteSink = std::function<void(ByteView)>;

// Not safe from several threads: a source keeps the piece that it showed last.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // At least one byte and at most `wanted` bytes from `offset`, valid until the next call. Needs offset < size().
  virtual ByteView view(std::uint64_t offset, std::size_t wanted) = 0;
  // For messages.
  virtual std::string name() const = 0;

  // Fills `out`; throws Format when the source ends before.
  void read_exactly(std::uint64_t offset, std::span<std::byte> out);
  // The same, allocated only once the range is known to be there.
  Bytes read(std::uint64_t offset, std::uint64_t count);

 private:
  void check_range(std::uint64_t offset, std::uint64_t count) const;
};

// A plain file, read a mebibyte at a time.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(path) {}

  std::uint64_t size() const override { return file_.size(); }
  std::string name() const override { return file_.path().string(); }
  ByteView view(std::uint64_t offset, std::size_t wanted) override;

 private:
  InputFile file_;
  Bytes buffer_;
  std::uint64_t begin_ = 0;  // of the buffer in the file
};

// Bytes that are already in memory.
class MemorySource final : public ByteSource {
 public:
  MemorySource(Bytes bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  std::uint64_t size() const override { return bytes_.size(); }
  std::string name() const override { return name_; }
  ByteView view(std::uint64_t offset, std::size_t wanted) override;

 private:
  Bytes bytes_;
  std::string name_;
};

}  // namespace sealift::bundle
