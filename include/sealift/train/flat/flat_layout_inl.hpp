// SPDX-License-Identifier: Apache-2.0
// The bodies of flat_layout.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/flat_layout.hpp>

#include <algorithm>
#include <numeric>

namespace sealift::train {

SEALIFT_BODY Fragment FlatLayout::fragment(std::size_t index, std::int64_t shard) const {
  const auto& place = placements.at(index);
  const auto first = shard * shard_numel;
  const auto begin = std::clamp(first, place.offset, place.offset + place.numel);
  const auto end = std::clamp(first + shard_numel, place.offset, place.offset + place.numel);
  return {begin - place.offset, end > begin ? begin - first : 0, end - begin};
}

SEALIFT_BODY at::Tensor FlatLayout::view_of(const at::Tensor& whole, std::size_t index, at::IntArrayRef sizes) const {
  const auto& place = placements.at(index);
  return whole.narrow(0, place.offset, place.numel).view(sizes);
}

SEALIFT_BODY at::Tensor FlatLayout::fragment_of(const at::Tensor& buffer, std::size_t index, std::int64_t shard,
                                                at::IntArrayRef sizes) const {
  const auto part = fragment(index, shard);
  const auto row = placements.at(index).row;
  auto piece = buffer.narrow(0, part.in_shard, part.numel);
  if (part.in_parameter % row != 0 || part.numel % row != 0) return piece;
  auto shape = sizes.vec();
  if (!shape.empty()) shape[0] = part.numel / row;
  return shape.empty() && part.numel == 0 ? piece : piece.view(shape);
}

SEALIFT_BODY FlatLayout make_flat_layout(const std::vector<std::vector<std::int64_t>>& shapes, std::int64_t shards,
                                         std::int64_t align) {
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
