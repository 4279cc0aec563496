// SPDX-License-Identifier: Apache-2.0
// Named tensors that lie in pieces in many files: request ranges of elements, then read all of them at once.
// Below `checkpoint_load` and `export`, which know what the names mean; this knows where their bytes are.
// Requests come first, so that each file is read once, front to back, and the digest is over the very bytes that are
// used.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/checkpoint/tensor_file.hpp>

namespace sealift::train {

/// A run of a flattened tensor's elements in one file.
struct Piece {
  std::size_t file = 0;
  std::uint64_t begin = 0;  ///< first byte in the file
  std::int64_t first = 0;   ///< first element
  std::int64_t numel = 0;

  std::int64_t end() const { return first + numel; }
};

/// The pieces of one tensor in a set of files, by first element.
struct PiecedTensor {
  at::ScalarType dtype = at::kFloat;
  std::vector<Piece> pieces;
};

class StoredPieces {
 public:
  /// Opens a file and returns its number. With `digest`, a later read reads the whole file and throws unless it
  /// matches.
  std::size_t open(const std::filesystem::path& path, std::optional<FileDigest> digest = std::nullopt);

  const safetensors::Header& header(std::size_t file) const { return files_.at(file).header; }
  std::string path(std::size_t file) const { return files_.at(file).file.path().string(); }

  /// Declares that `entry` of file `file` holds the elements of tensor `name` from `first` on.
  void add(const std::string& name, std::size_t file, const safetensors::Tensor& entry, std::int64_t first);

  /// Call once, after the last `add`. Throws when two pieces hold the same element.
  void sort();

  const std::map<std::string, PiecedTensor>& tensors() const { return tensors_; }

  /// The pieces of `name` with elements of [first, first + numel), in order; none for an unknown name.
  std::vector<Piece> overlapping(const std::string& name, std::int64_t first, std::int64_t numel) const;

  /// A host tensor [numel] that `read` will fill with elements [first, first + numel) of `name`. An element that is in
  /// no file is an error, or zero with `sparse`.
  at::Tensor request(const std::string& name, std::int64_t first, std::int64_t numel, bool sparse = false);

  /// The same into `target` [n], contiguous, on the host and of the stored dtype: elements [first, first + n).
  void request_into(const at::Tensor& target, const std::string& name, std::int64_t first, bool sparse = false);

  /// Fills all tensors requested since the last `read`.
  void read();

  /// Checks the digest of every file; later reads trust the files, and read only what is requested.
  void check_digests();

 private:
  struct Copy {
    std::uint64_t begin;  ///< in the file
    std::size_t bytes;
    char* data;
    at::Tensor owner;  ///< of `data`
  };
  struct Source {
    InputFile file;
    safetensors::Header header;
    std::optional<FileDigest> digest;
    std::vector<Copy> copies;
  };

  static void read_ranges(const Source& source);

  /// Reads the whole file in order: the digest is over the very bytes that are copied.
  static void read_checked(Source& source);

  std::vector<Source> files_;
  std::map<std::string, PiecedTensor> tensors_;
};

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/checkpoint/stored_pieces_inl.hpp>
#endif
