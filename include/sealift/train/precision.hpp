// SPDX-License-Identifier: Apache-2.0
// The dtypes in which a unit computes, reduces and keeps its buffers.
// A field of `Policy`, and of the options of a single unit; `parallelize` and the unit carry it out.
// FSDP2's MixedPrecisionPolicy, with the buffers of FSDP1's, which no later cast of a module would reach.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <vector>

namespace sealift::train {

/// The dtypes of one unit; unset means the parameters' and buffers' own.
struct MixedPrecision {
  std::optional<at::ScalarType> param_dtype = {};   ///< of gathered parameters; shards keep their own dtype
  std::optional<at::ScalarType> reduce_dtype = {};  ///< of the sum of gradients; unset: the shards' dtype
  std::optional<at::ScalarType> output_dtype = {};  ///< of floating tensors that the root's forward returns
  std::optional<at::ScalarType> buffer_dtype = {};  ///< of floating buffers, cast once and so saved; FSDP1's
  bool cast_forward_inputs = true;                  ///< cast floating inputs of a unit's forward to `param_dtype`

  bool operator==(const MixedPrecision&) const = default;
};

/// Casts those of `tensors` that are floating to `dtype`, if that is set. Each stays the same tensor, so that the
/// members of modules see the cast.
inline void cast_in_place(std::vector<at::Tensor> tensors, std::optional<at::ScalarType> dtype) {
  if (!dtype) return;
  for (auto& tensor : tensors) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(*dtype));
  }
}

}  // namespace sealift::train
