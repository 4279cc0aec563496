// SPDX-License-Identifier: Apache-2.0
// The bodies of stored_pieces.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/checkpoint/stored_pieces.hpp>

namespace sealift::train {

SEALIFT_BODY std::size_t StoredPieces::open(const std::filesystem::path& path, std::optional<FileDigest> digest) {
  InputFile file(path);
  TORCH_CHECK(!digest || file.bytes() == digest->bytes, path.string(), " has ", file.bytes(), " bytes; expected ",
              digest->bytes, "; it was cut or replaced, so take it from a copy or load an earlier checkpoint");
  auto header = read_header(file);
  files_.push_back({std::move(file), std::move(header), std::move(digest), {}});
  return files_.size() - 1;
}

SEALIFT_BODY void StoredPieces::add(const std::string& name, std::size_t file, const safetensors::Tensor& entry,
                                    std::int64_t first) {
  const auto dtype = scalar_type(entry.dtype, path(file) + ", " + entry.name);
  auto& tensor = tensors_.try_emplace(name, PiecedTensor{dtype, {}}).first->second;
  TORCH_CHECK(tensor.dtype == dtype, path(file), " has ", name, " as ", entry.dtype, ", another file as ",
              dtype_name(tensor.dtype), "; the checkpoint is damaged");
  tensor.pieces.push_back({file, header(file).data_begin + entry.begin, first,
                           static_cast<std::int64_t>(entry.bytes() / at::elementSize(dtype))});
}

SEALIFT_BODY void StoredPieces::sort() {
  for (auto& [name, tensor] : tensors_) {
    auto& pieces = tensor.pieces;
    std::sort(pieces.begin(), pieces.end(), [](const Piece& l, const Piece& r) { return l.first < r.first; });
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      TORCH_CHECK(pieces[i - 1].end() <= pieces[i].first, path(pieces[i - 1].file), " and ", path(pieces[i].file),
                  " both hold element ", pieces[i].first, " of ", name, "; the checkpoint is damaged");
    }
  }
}

SEALIFT_BODY std::vector<Piece> StoredPieces::overlapping(const std::string& name, std::int64_t first,
                                                          std::int64_t numel) const {
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

SEALIFT_BODY at::Tensor StoredPieces::request(const std::string& name, std::int64_t first, std::int64_t numel,
                                              bool sparse) {
  const auto found = tensors_.find(name);
  TORCH_CHECK(found != tensors_.end(), name, " is in no file; the checkpoint is damaged");
  auto target = torch::zeros({numel}, found->second.dtype);
  request_into(target, name, first, sparse);
  return target;
}

SEALIFT_BODY void StoredPieces::request_into(const at::Tensor& target, const std::string& name, std::int64_t first,
                                             bool sparse) {
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

SEALIFT_BODY void StoredPieces::read() {
  for (auto& source : files_) {
    if (source.copies.empty()) continue;
    source.digest ? read_checked(source) : read_ranges(source);
    source.copies.clear();
  }
}

SEALIFT_BODY void StoredPieces::check_digests() {
  for (auto& source : files_) {
    if (source.digest) read_checked(source);
    source.digest.reset();
  }
}

SEALIFT_BODY void StoredPieces::read_ranges(const Source& source) {
  for (const auto& copy : source.copies) source.file.read(copy.begin, copy.data, copy.bytes);
}

SEALIFT_BODY void StoredPieces::read_checked(Source& source) {
  std::sort(source.copies.begin(), source.copies.end(), [](const Copy& l, const Copy& r) { return l.begin < r.begin; });
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

}  // namespace sealift::train
