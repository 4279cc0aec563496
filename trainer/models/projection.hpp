// SPDX-License-Identifier: Apache-2.0
// A linear layer of a decoder, to which an adapter may be added: what LoRA and its relatives train.
// `models/` is built of these; `tuning/` adds the adapters before the model is parallelized.
// The layer's own parameters keep Hugging Face's names (`weight`, `bias`); the adapter's lie beside them.
#pragma once

#include "trainer/models/joined_linear.hpp"

#include <torch/torch.h>

#include <memory>
#include <optional>

namespace sealift::trainer {

/// What is trained beside a frozen projection. Registered in it, so that it belongs to the same unit.
class Adapter : public torch::nn::Module {
 public:
  /// The projection's output [..., out] with the adapter, of its input [..., in], its output without it, and its weight
  /// [out, in].
  virtual at::Tensor apply_to(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight) = 0;

  /// The same as two factors: `a`, `b` and `scaling`, undefined where nothing is added; none where it is more than a
  /// product.
  virtual std::optional<LinearPart> factors() const { return {}; }
};

class ProjectionImpl : public torch::nn::Module {
 public:
  ProjectionImpl(std::int64_t in, std::int64_t out, bool bias)
      : weight(register_parameter("weight", torch::empty({out, in}))),
        bias(bias ? register_parameter("bias", torch::empty({out})) : at::Tensor()) {}

  /// [..., in] -> [..., out]
  at::Tensor forward(const at::Tensor& input) {
    const bool trains = adapter_ || weight.requires_grad();
    if (const auto joined = part(); trains && joined && can_join(input, {*joined})) {
      return joined_linear(input, {*joined}).front();
    }
    const auto output = torch::linear(input, weight, bias);
    return adapter_ ? adapter_->apply_to(output, input, weight) : output;
  }

  /// What it computes, for joined_linear; none where its adapter is more than a product.
  std::optional<LinearPart> part() const {
    auto part = adapter_ ? adapter_->factors() : LinearPart{};
    if (part) part->weight = weight, part->bias = bias;
    return part;
  }

  /// Adds `adapter` under `name`. One at most; before parallelize().
  void adapt(const std::string& name, std::shared_ptr<Adapter> adapter) {
    TORCH_CHECK(!adapter_, "this projection has an adapter already");
    adapter_ = register_module(name, std::move(adapter));
  }
  const std::shared_ptr<Adapter>& adapter() const { return adapter_; }

  at::Tensor weight, bias;  ///< [out, in], [out] or undefined

 private:
  std::shared_ptr<Adapter> adapter_;
};
TORCH_MODULE(Projection);

/// The outputs of `projections` for one input, joined where that can be; then `together` as in joined_linear.
inline std::vector<at::Tensor> project(const at::Tensor& input, const std::vector<Projection>& projections,
                                       std::int64_t together = 0) {
  std::vector<LinearPart> parts;
  for (const auto& each : projections) {
    if (auto part = each->part()) parts.push_back(std::move(*part));
  }
  if (parts.size() == projections.size() && can_join(input, parts)) return joined_linear(input, parts, together);
  std::vector<at::Tensor> outputs;
  for (auto each : projections) outputs.push_back(each(input));
  return outputs;
}

}  // namespace sealift::trainer
