// SPDX-License-Identifier: Apache-2.0
// Where each parameter of a unit lies in the unit's flat, and which part of the flat each rank holds.
// Bottom of `flat`: arithmetic in elements, and the views that follow from it.
// Parameters start on cache lines, as if each had its own allocation, so a kernel reads them as it would unsharded.
// Shard boundaries fall between rows where that is cheap, so that per-row work (quantization, matrix optimizers) stays
// local.
// Mirrored by trainer/plan/model_shape.cpp: change both.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/mesh.hpp>

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
  Fragment fragment(std::size_t index, std::int64_t shard) const;

  /// Parameter `index` in `whole` [padded], in its shape `sizes`.
  at::Tensor view_of(const at::Tensor& whole, std::size_t index, at::IntArrayRef sizes) const;

  /// The part of parameter `index`, of shape `sizes`, in `buffer` [shard_numel] of shard `shard`: [rows, ...] when it
  /// is whole rows, else [numel].
  at::Tensor fragment_of(const at::Tensor& buffer, std::size_t index, std::int64_t shard, at::IntArrayRef sizes) const;
};

/// Places parameters of these shapes one after the other and cuts the flat into `shards` equal parts. Parameters start,
/// and shards end, at multiples of `align` elements.
FlatLayout make_flat_layout(const std::vector<std::vector<std::int64_t>>& shapes, std::int64_t shards,
                            std::int64_t align = FlatLayout::kAlign);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/flat_layout_inl.hpp>
#endif
