// SPDX-License-Identifier: Apache-2.0
// Where each parameter of a unit lies in the unit's flat, and which part of the flat each rank holds.
// Bottom of `flat`: arithmetic in elements, and the views that follow from it.
// Parameters start on cache lines, as if each had its own allocation, so a kernel reads them as it would unsharded.
// Shard boundaries fall between rows where that is cheap, so that per-row work (quantization, matrix optimizers) stays
// local.
// Mirrored by trainer/plan/model_shape.cpp: change both.
#pragma once

#include <sealift/train/mesh.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sealift::train {

/// A parameter's place in a flat, in elements.
struct Placement {
  std::int64_t offset = 0;
  std::int64_t numel = 0;
  std::int64_t row = 1;  ///< elements per row: the product of all sizes but the first
};

/// The part of one parameter that one rank holds; may be empty.
struct Fragment {
  std::int64_t in_parameter = 0;  ///< first element, counted from the parameter's start
  std::int64_t in_shard = 0;      ///< first element, counted from the shard's start
  std::int64_t numel = 0;
};

/// The layout of one flat: `shards * shard_numel` elements; shard r is [r * shard_numel, (r + 1) * shard_numel).
struct FlatLayout {
  static constexpr std::int64_t kAlign = 16;  ///< elements; 64 bytes of fp32

  std::vector<Placement> placements = {};  ///< in the order of the parameters, not overlapping
  std::int64_t shards = 1;
  std::int64_t shard_numel = 0;
  bool row_aligned = true;  ///< every shard boundary falls between two rows of the parameter that it cuts

  std::int64_t padded_numel() const { return shards * shard_numel; }

  /// The part of parameter `index` that lies in shard `shard`.
  Fragment fragment(std::size_t index, std::int64_t shard) const {
    const auto& place = placements.at(index);
    const auto first = shard * shard_numel;
    const auto begin = std::clamp(first, place.offset, place.offset + place.numel);
    const auto end = std::clamp(first + shard_numel, place.offset, place.offset + place.numel);
    return {begin - place.offset, end > begin ? begin - first : 0, end - begin};
  }

  /// Parameter `index` in `whole` [padded], in its shape `sizes`.
  at::Tensor view_of(const at::Tensor& whole, std::size_t index, at::IntArrayRef sizes) const {
    const auto& place = placements.at(index);
    return whole.narrow(0, place.offset, place.numel).view(sizes);
  }

  /// The part of parameter `index`, of shape `sizes`, in `buffer` [shard_numel] of shard `shard`: [rows, ...] when it
  /// is whole rows, else [numel].
  at::Tensor fragment_of(const at::Tensor& buffer, std::size_t index, std::int64_t shard, at::IntArrayRef sizes) const {
    const auto part = fragment(index, shard);
    const auto row = placements.at(index).row;
    auto piece = buffer.narrow(0, part.in_shard, part.numel);
    if (part.in_parameter % row != 0 || part.numel % row != 0) return piece;
    auto shape = sizes.vec();
    if (!shape.empty()) shape[0] = part.numel / row;
    return shape.empty() && part.numel == 0 ? piece : piece.view(shape);
  }
};

/// Places parameters of these shapes one after the other and cuts the flat into `shards` equal parts. Parameters start,
/// and shards end, at multiples of `align` elements.
inline FlatLayout make_flat_layout(const std::vector<std::vector<std::int64_t>>& shapes, std::int64_t shards,
                                   std::int64_t align = FlatLayout::kAlign) {
  TORCH_CHECK(shards >= 1, "a flat is cut into ", shards, " shards; expected at least 1");
  const auto round_up = [](std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; };
  FlatLayout layout{.shards = shards};

  std::int64_t total = 0;     // of the parameters, with the padding of `align` only
  std::int64_t rows = align;  // a multiple of every row length
  for (const auto& shape : shapes) {
    Placement place{.numel = 1};
    for (auto size : shape) place.numel *= size;
    place.row = shape.empty() || place.numel == 0 ? 1 : place.numel / shape[0];
    total += round_up(place.numel, align);
    // Odd row lengths have a huge common multiple: where padding would exceed 1/8 (a guess), rows may be cut.
    layout.row_aligned = layout.row_aligned && (rows = std::lcm(rows, place.row)) <= (std::int64_t{1} << 40);
    layout.placements.push_back(place);
  }
  layout.row_aligned = shards == 1 || (layout.row_aligned && rows * shards * 8 <= total);
  const bool by_rows = shards > 1 && layout.row_aligned;

  std::int64_t end = 0;
  for (auto& place : layout.placements) {
    place.offset = round_up(end, by_rows ? std::lcm(align, place.row) : align);
    end = place.offset + place.numel;
  }
  layout.shard_numel = round_up((end + shards - 1) / shards, by_rows ? rows : align);
  return layout;
}

}  // namespace sealift::train
