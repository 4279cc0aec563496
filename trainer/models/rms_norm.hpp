// SPDX-License-Identifier: Apache-2.0
// Root mean square normalization with a learned scale, or one of 1 + weight, of the last dimension; or LayerNorm
// without parameters. Used around attention and MLP, and of heads where a family has it. LibTorch's modules have none;
// ATen's function is fused where the device has a kernel. Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/families.hpp"

#include <torch/torch.h>

namespace sealift::trainer {

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(std::int64_t width, double eps, NormKind kind = NormKind::Rms)
      : weight(kind == NormKind::Plain ? at::Tensor() : register_parameter("weight", torch::empty({width}))),
        width_(width),
        eps_(eps),
        one_plus_(kind == NormKind::RmsOnePlus) {}

  /// [..., width] -> the same: input / sqrt(mean(input²) + eps) * weight, or * (1 + weight), or the input less its
  /// mean, over its deviation
  at::Tensor forward(const at::Tensor& input) {
    if (one_plus_) {  // in fp32, since a half type would round the small weight away
      const auto scaled = at::rms_norm(input.to(at::kFloat), {width_}, 1 + weight.to(at::kFloat), eps_);
      return scaled.to(input.scalar_type());
    }
    if (weight.defined()) return at::rms_norm(input, {width_}, weight, eps_);
    if (input.is_meta()) return at::rms_norm(input, {width_}, {}, eps_);  // of the same shape; there is no other kernel
    return at::layer_norm(input, {width_}, {}, {}, eps_);
  }

  at::Tensor weight;  ///< [width]; undefined: NormKind::Plain

 private:
  std::int64_t width_;
  double eps_;
  bool one_plus_;
};
TORCH_MODULE(RmsNorm);

}  // namespace sealift::trainer
