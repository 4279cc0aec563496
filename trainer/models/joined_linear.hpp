// SPDX-License-Identifier: Apache-2.0
// Linear layers of one input as one function, each with a low-rank adapter or without: what `Projection` computes.
// Attention calls it for queries, keys and values, the MLP for gate and up, any projection that has an adapter or is
// trained for itself.
// Autograd's own nodes would add up the input's gradients and adapters in operations of their own, each a pass over
// what is as large as the output; here the products add in place, those of a weight's gradient to the engine's buffer
// where it takes them (train::add_gradient_product).
// Mirrored by trainer/plan/decoder_tape.cpp (joined): change both.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace sealift::trainer {

/// An output is input · weightᵀ + bias + scaling · (input · aᵀ) · bᵀ. All of one dtype.
struct LinearPart {
  at::Tensor weight, bias;  ///< [out, in]; [out] or undefined
  at::Tensor a, b;          ///< [rank, in], [out, rank]; both undefined: no adapter
  double scaling = 1;
};

/// Whether the joined function computes these of `input`: one dtype, and no autocast, which doesn't reach into it.
bool can_join(const at::Tensor& input, const std::vector<LinearPart>& parts);

/// input [..., in] -> [..., out] of each part. The first `together` outputs are slices of one buffer.
std::vector<at::Tensor> joined_linear(const at::Tensor& input, const std::vector<LinearPart>& parts,
                                      std::int64_t together = 0);

}  // namespace sealift::trainer
