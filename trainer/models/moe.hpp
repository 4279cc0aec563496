// SPDX-License-Identifier: Apache-2.0
// The sparse block of a decoder's layer: a router sends each token to a few of many experts and adds up their answers.
// In place of the MLP, as transformers computes each family's; with an MLP beside it that all tokens pass, where a
// family has one.
// All experts of a block are two parameters, so that each has a gradient in every step (zeros without tokens), flats
// and collectives do not depend on how a rank routes, and one kernel multiplies them all.
// Mirrored by trainer/plan/decoder_tape.cpp: change both.
#pragma once

#include "trainer/models/feed_forward.hpp"

#include <sealift/train/split_along.hpp>

#include <torch/torch.h>

namespace sealift::trainer {

/// The axis of a mesh over which experts are spread; make_groups(world, policy, kExpertAxis, ranks) makes it.
inline constexpr const char* kExpertAxis = "ep";

/// y [rows, out]: of each row of x [rows, in] the product with the matrix of its expert in `weight` [experts, out, in].
/// Rows lie by expert, ascending; `counts` [experts] int64 on x's device says how many each has. By at::_grouped_mm,
/// which needs rows and strides of a multiple of 16 bytes; else a product for each expert.
at::Tensor grouped_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& counts);

/// The same of matrices [experts, in, out], with biases [experts, out] or undefined.
at::Tensor grouped_linear_by_columns(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                     const at::Tensor& counts);

/// Which experts a token goes to.
struct Routes {
  at::Tensor probabilities;  ///< [tokens, experts], fp32; undefined: no loss balances this router
  at::Tensor weights;        ///< [tokens, per_token], of the experts' answers
  at::Tensor experts;        ///< [tokens, per_token] int64
};

class RouterImpl : public torch::nn::Module {
 public:
  RouterImpl(std::int64_t width, const ExpertConfig& config);

  /// tokens [tokens, width]; as `ExpertConfig::routing` says, in fp32. The weights sum to 1 if
  /// `ExpertConfig::normalize`. Qwen3-MoE rounds them to the tokens' dtype, others keep them in fp32.
  Routes forward(const at::Tensor& tokens);

  using torch::nn::Module::to;
  /// The correction stays fp32, as in transformers: choices depend on its last bits.
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  at::Tensor weight;      ///< [experts, width]
  at::Tensor bias;        ///< Routing::SoftmaxOfBest: [experts]
  at::Tensor correction;  ///< Routing::Sigmoid: [experts], fp32, added for the choice. A buffer: nothing trains it

 private:
  Routes by_softmax(const at::Tensor& tokens) const;
  Routes by_sigmoid(const at::Tensor& tokens) const;
  Routes of_best(const at::Tensor& tokens) const;
  /// Scores outside of each token's best groups become -infinity.
  at::Tensor within_groups(const at::Tensor& scores) const;

  ExpertConfig config_;
};
TORCH_MODULE(Router);

/// Gated MLPs: down(silu(gate(x)) * up(x)). Over an axis kExpertAxis of the mesh each rank keeps an equal part of them,
/// tokens travel to their experts' ranks and answers back, by all-to-all. Every rank of the axis must then run the
/// block as often as the others.
class ExpertsImpl : public torch::nn::Module, public train::SplitAlong {
 public:
  ExpertsImpl(std::int64_t width, const ExpertConfig& config);

  /// tokens [tokens, width] and their routes -> [tokens, width]; the number of tokens may differ from rank to rank.
  at::Tensor forward(const at::Tensor& tokens, const Routes& routes);

  const char* axis() const override { return kExpertAxis; }
  void set_group(train::Collectives group, std::shared_ptr<const bool> silent) override {
    group_ = std::move(group);
    silent_ = std::move(silent);
  }

  at::Tensor gate_up_proj;  ///< [experts, 2 * config.width, width]: of each expert gate's rows, then up's
  at::Tensor down_proj;     ///< [experts, width, config.width]; by columns both are [experts, in, out]
  at::Tensor gate_up_proj_bias, down_proj_bias;  ///< [experts, out]; undefined: none

 private:
  at::Tensor answer(const at::Tensor& rows, const at::Tensor& counts) const;
  at::Tensor answer_across(const at::Tensor& rows, const at::Tensor& counts);
  at::Tensor answer_others(const at::Tensor& tokens, const Routes& routes);

  at::Tensor hidden(const at::Tensor& rows, const at::Tensor& counts) const;

  ExpertConfig config_;
  std::int64_t experts_;
  train::Collectives group_;            ///< ranks that hold the other experts
  std::shared_ptr<const bool> silent_;  ///< this rank has no tokens; null in a mesh without the axis
};
TORCH_MODULE(Experts);

/// Both, in place of a layer's MLP.
class SparseBlockImpl final : public FeedForward {
 public:
  SparseBlockImpl(std::int64_t width, const ExpertConfig& config);

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& input, const at::Tensor& counted) override;

  Router gate{nullptr};
  Experts experts{nullptr};
  std::shared_ptr<MlpImpl> shared;  ///< null: none

 private:
  static at::Tensor routed(const Routes& routes, const at::Tensor& counted);
};
TORCH_MODULE(SparseBlock);

}  // namespace sealift::trainer
