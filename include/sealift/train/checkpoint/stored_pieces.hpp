// SPDX-License-Identifier: Apache-2.0
// Named tensors that lie in pieces in many files: request ranges of elements, then read all of them at once.
// Below `checkpoint_load` and `export`, which know what the names mean; this knows where their bytes are.
// Requests come first, so that each file is read once, front to back, and the digest is over the very bytes that are
// used.
#pragma once

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
  std::size_t open(const std::filesystem::path& path, std::optional<FileDigest> digest = std::nullopt) {
    InputFile file(path);
    TORCH_CHECK(!digest || file.bytes() == digest->bytes, path.string(), " has ", file.bytes(), " bytes; expected ",
                digest->bytes, "; it was cut or replaced, so take it from a copy or load an earlier checkpoint");
    auto header = read_header(file);
    files_.push_back({std::move(file), std::move(header), std::move(digest), {}});
    return files_.size() - 1;
  }

  const safetensors::Header& header(std::size_t file) const { return files_.at(file).header; }
  std::string path(std::size_t file) const { return files_.at(file).file.path().string(); }

  /// Declares that `entry` of file `file` holds the elements of tensor `name` from `first` on.
  void add(const std::string& name, std::size_t file, const safetensors::Tensor& entry, std::int64_t first) {
    const auto dtype = scalar_type(entry.dtype, path(file) + ", " + entry.name);
    auto& tensor = tensors_.try_emplace(name, PiecedTensor{dtype, {}}).first->second;
    TORCH_CHECK(tensor.dtype == dtype, path(file), " has ", name, " as ", entry.dtype, ", another file as ",
                dtype_name(tensor.dtype), "; the checkpoint is damaged");
    tensor.pieces.push_back({file, header(file).data_begin + entry.begin, first,
                             static_cast<std::int64_t>(entry.bytes() / at::elementSize(dtype))});
  }

  /// Call once, after the last `add`. Throws when two pieces hold the same element.
  void sort() {
    for (auto& [name, tensor] : tensors_) {
      auto& pieces = tensor.pieces;
      std::sort(pieces.begin(), pieces.end(), [](const Piece& l, const Piece& r) { return l.first < r.first; });
      for (std::size_t i = 1; i < pieces.size(); ++i) {
        TORCH_CHECK(pieces[i - 1].end() <= pieces[i].first, path(pieces[i - 1].file), " and ", path(pieces[i].file),
                    " both hold element ", pieces[i].first, " of ", name, "; the checkpoint is damaged");
      }
    }
  }

  const std::map<std::string, PiecedTensor>& tensors() const { return tensors_; }

  /// The pieces of `name` with elements of [first, first + numel), in order; none for an unknown name.
  std::vector<Piece> overlapping(const std::string& name, std::int64_t first, std::int64_t numel) const {
    std::vector<Piece> result;
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return result;
    const auto& pieces = found->second.pieces;
    auto piece = std::upper_bound(pieces.begin(), pieces.end(), first,
                                  [](std::int64_t element, const Piece& other) { return element < other.end(); });
    for (; piece != pieces.end() && piece->first < first + numel; ++piece) {
      if (piece->numel > 0) result.push_back(*piece);
    }
    return result;
  }

  /// A host tensor [numel] that `read` will fill with elements [first, first + numel) of `name`. An element that is in
  /// no file is an error, or zero with `sparse`.
  at::Tensor request(const std::string& name, std::int64_t first, std::int64_t numel, bool sparse = false) {
    const auto found = tensors_.find(name);
    TORCH_CHECK(found != tensors_.end(), name, " is in no file; the checkpoint is damaged");
    auto target = torch::zeros({numel}, found->second.dtype);
    request_into(target, name, first, sparse);
    return target;
  }

  /// The same into `target` [n], contiguous, on the host and of the stored dtype: elements [first, first + n).
  void request_into(const at::Tensor& target, const std::string& name, std::int64_t first, bool sparse = false) {
    const auto numel = target.numel();
    const auto width = static_cast<std::int64_t>(target.element_size());
    auto* data = static_cast<char*>(target.mutable_data_ptr());
    auto next = first;
    for (const auto& piece : overlapping(name, first, numel)) {
      const auto begin = std::max(first, piece.first);
      const auto end = std::min(first + numel, piece.end());
      TORCH_CHECK(sparse || begin == next, "elements ", next, " to ", begin, " of ", name, " are in no file");
      files_[piece.file].copies.push_back({piece.begin + static_cast<std::uint64_t>((begin - piece.first) * width),
                                           static_cast<std::size_t>((end - begin) * width),
                                           data + (begin - first) * width, target});
      next = end;
    }
    TORCH_CHECK(sparse || next == first + numel, "elements ", next, " to ", first + numel, " of ", name,
                " are in no file; the checkpoint is damaged");
  }

  /// Fills all tensors requested since the last `read`.
  void read() {
    for (auto& source : files_) {
      if (source.copies.empty()) continue;
      source.digest ? read_checked(source) : read_ranges(source);
      source.copies.clear();
    }
  }

  /// Checks the digest of every file; later reads trust the files, and read only what is requested.
  void check_digests() {
    for (auto& source : files_) {
      if (source.digest) read_checked(source);
      source.digest.reset();
    }
  }

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

  static void read_ranges(const Source& source) {
    for (const auto& copy : source.copies) source.file.read(copy.begin, copy.data, copy.bytes);
  }

  /// Reads the whole file in order: the digest is over the very bytes that are copied.
  static void read_checked(Source& source) {
    std::sort(source.copies.begin(), source.copies.end(),
              [](const Copy& l, const Copy& r) { return l.begin < r.begin; });
    std::vector<char> block(std::size_t{1} << 20);
    Sha256 digest;
    std::size_t first_open = 0;
    for (std::uint64_t at = 0; at < source.file.bytes(); at += block.size()) {
      const auto bytes = std::min<std::uint64_t>(block.size(), source.file.bytes() - at);
      source.file.read(at, block.data(), bytes);
      digest.update(block.data(), bytes);
      for (auto i = first_open; i < source.copies.size() && source.copies[i].begin < at + bytes; ++i) {
        const auto& copy = source.copies[i];
        const auto begin = std::max(copy.begin, at);
        const auto end = std::min(copy.begin + copy.bytes, at + bytes);
        if (begin < end) std::memcpy(copy.data + (begin - copy.begin), block.data() + (begin - at), end - begin);
        if (i == first_open && copy.begin + copy.bytes <= at + bytes) ++first_open;
      }
    }
    const auto got = digest.hex();
    TORCH_CHECK(got == source.digest->sha256, source.file.path().string(), " has the SHA-256 ", got, "; expected ",
                source.digest->sha256, "; it was changed, so take it from a copy or load an earlier checkpoint");
  }

  std::vector<Source> files_;
  std::map<std::string, PiecedTensor> tensors_;
};

}  // namespace sealift::train
