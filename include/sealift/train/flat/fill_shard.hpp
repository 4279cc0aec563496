// SPDX-License-Identifier: Apache-2.0
// How a rank's shard of a flat gets its first values, without the whole: from a source, from this rank's parameters, or
// from rank 0's. Called by the constructor of `flat_param`.
// Rank 0 sends in pieces, so that neither it nor the others ever make a second copy of a unit.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/groups.hpp>
#include <sealift/train/flat/flat_layout.hpp>
#include <sealift/train/flat/source.hpp>

namespace sealift::train {

/// A tensor and its path in the model.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Where `tensor` will live: on the rank's device if that is not the host (a rehearsal's counts what it would hold) or
/// the tensor has no memory yet, else where it is.
at::Device device_for(const at::Tensor& tensor, const Groups& groups);

namespace detail {

/// Shard `rank` [shard_numel] of `parameters`: their parts, from `source`, or if that is null from their own memory.
void fill_shard(const at::Tensor& shard, const std::vector<NamedTensor>& parameters, const FlatLayout& layout,
                std::int64_t rank, Source* source);

/// The same from the parameters of rank 0 of the world; the others' may be on the meta device. `options`: dtype and
/// device of what is sent. Collective.
void receive_shard(const at::Tensor& shard, const std::vector<NamedTensor>& parameters, const FlatLayout& layout,
                   Groups& groups, const at::TensorOptions& options, const std::string& unit);

}  // namespace detail

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/fill_shard_inl.hpp>
#endif
