// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization with a learned scale, of the last dimension.
// Used around attention and MLP, and of heads where a family has it.
// LibTorch's modules have none; ATen's function is fused where the device has a kernel.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include <torch/torch.h>

namespace sealift::trainer {

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(std::int64_t width, double eps)
      : weight(register_parameter("weight", torch::empty({width}))), eps_(eps) {}

  /// [..., width] -> the same: input / sqrt(mean(input²) + eps) * weight
  at::Tensor forward(const at::Tensor& input) { return at::rms_norm(input, weight.sizes(), weight, eps_); }

  at::Tensor weight;  ///< [width]

 private:
  double eps_;
};
TORCH_MODULE(RmsNorm);

}  // namespace sealift::trainer
