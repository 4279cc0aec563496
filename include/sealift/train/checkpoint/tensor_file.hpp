// SPDX-License-Identifier: Apache-2.0
// Tensor files on disk: one writer, whose file gets its name only when it is whole and durable, and one reader.
// Above `safetensors` (the bytes) and `digest`; `checkpoint_*` and `export` read and write all their files here.
// Written to NAME.tmp, synced, renamed, and the folder synced: a crash at any point leaves the old file or the new one.
#pragma once

#include <sealift/safetensors_values.hpp>
#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/digest.hpp>

#include <filesystem>
#include <utility>

namespace sealift::train {

using TensorList = std::vector<std::pair<std::string, at::Tensor>>;

/// The format's name of `type`; throws for the few that it does not have.
std::string dtype_name(at::ScalarType type);

/// The reverse of `dtype_name`; throws for dtypes that LibTorch does not compute with.
at::ScalarType scalar_type(const std::string& dtype, const std::string& where);

namespace detail {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace detail

/// Makes the names in `folder` survive a loss of power.
void sync_folder(const std::filesystem::path& folder);

/// Size and digest of a file, for an index.
struct FileDigest {
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// A new file, which gets its name with `commit`; without that nothing of it is left.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(const void* data, std::size_t bytes);

  /// Contents first, then the name: when this returns, both survive a loss of power.
  FileDigest commit();

 private:
  std::filesystem::path path_, temporary_;
  detail::Descriptor file_;
  Sha256 digest_;
  FileDigest written_;
  bool committed_ = false;
};

/// A regular file, open for reading; its size is that at opening.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Fills `data` from byte `offset` on; throws when the file is too short.
  void read(std::uint64_t offset, void* data, std::size_t bytes) const;

 private:
  std::filesystem::path path_;
  detail::Descriptor file_;
  std::uint64_t bytes_ = 0;
};

/// The whole of a text file of at most `max_bytes`.
std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes);

safetensors::Header read_header(const InputFile& file);

/// A tensor's entry in a header to write.
safetensors::Tensor describe(const std::string& name, at::ScalarType type, at::IntArrayRef sizes);

/// Writes tensors, wherever they live, as one file, and makes it durable.
FileDigest write_tensor_file(const std::filesystem::path& path, const TensorList& tensors,
                             std::map<std::string, std::string> metadata);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/tensor_file_inl.hpp>
#endif
