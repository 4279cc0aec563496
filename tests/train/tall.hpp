// SPDX-License-Identifier: Apache-2.0
// The model of the tests that plan units: an embedding, five blocks with a norm each, a head, all held in Shardable,
// and a parameter of the root. A plan needs only a model and a policy, so nothing here is ever called.
#pragma once

#include "tests/train/fixture.hpp"

namespace sealift::test {

using Paths = std::vector<std::string>;

class NormedImpl : public torch::nn::Module {
 public:
  NormedImpl() : norm_(torch::nn::LayerNormOptions({8})), linear_(register_module("linear", torch::nn::Linear(8, 8))) {
    register_module("norm", norm_);
  }
  at::Tensor forward(const at::Tensor& x) { return x + linear_(norm_(x)); }

 private:
  torch::nn::LayerNorm norm_;
  torch::nn::Linear linear_;
};
TORCH_MODULE(Normed);

class TallImpl : public torch::nn::Module {
 public:
  TallImpl() {
    register_module("tokens", Shardable<torch::nn::Embedding>(100, 8));  // 800 elements; a block has 88, the head 900
    for (int i = 0; i < 5; ++i) register_module("block" + std::to_string(i), Shardable<Normed>());
    register_module("head", Shardable<torch::nn::Linear>(8, 100));
    register_parameter("gain", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE(Tall);

inline Paths paths_of(torch::nn::Module& model, const Policy& policy) {
  Paths paths;
  for (const auto& plan : plan_units(model, policy)) paths.push_back(plan.path);
  return paths;
}

/// The units of a Tall.
inline Paths paths_of(const Policy& policy) {
  Shardable<Tall> model;
  return paths_of(*model, policy);
}

inline Paths paths_of(Wrap wrap) {
  auto policy = fsdp();
  policy.wrap = std::move(wrap);
  return paths_of(policy);
}

using Children = std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>;

/// A module with modules, held in Shardable or not.
struct HolderImpl : torch::nn::Module {
  explicit HolderImpl(const Children& children) {
    for (const auto& [name, child] : children) register_module(name, child);
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};

inline std::shared_ptr<ShardableImpl<torch::nn::LinearImpl>> shardable_linear(std::int64_t in, std::int64_t out) {
  return std::make_shared<ShardableImpl<torch::nn::LinearImpl>>(in, out);
}

}  // namespace sealift::test
