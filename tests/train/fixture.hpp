// SPDX-License-Identifier: Apache-2.0
// The model and the training loop that the core's tests share.
// Small, with shapes that do not divide: a tied embedding of a prime number of rows, a scalar, a frozen matrix, a layer
// that is never called. The loop is a user's: nothing in it depends on how the model is spread.
#pragma once

#include <sealift/train.hpp>

#include <limits>

#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

namespace sealift::test {

using namespace sealift::train;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Policy ddp() {
  return {.method = ParallelMethod::Ddp};
}
inline Policy fsdp() {
  return {.method = ParallelMethod::Fsdp};
}
inline Policy hsdp(std::int64_t shard_size) {
  return {.method = ParallelMethod::Hsdp, .shard_size = shard_size};
}

inline Groups groups_of(const World& world, const Policy& policy) {
  return make_groups(world, make_mesh(policy, world.size));
}

/// Values that depend on the parameter's place in the model only, so that all ranks and worlds start alike.
inline void fill(torch::nn::Module& module, double phase = 0) {
  at::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    phase += 0.37;
    const auto index = torch::arange(parameter.numel()).view(parameter.sizes());
    parameter.copy_(torch::sin(index * 0.91 + phase) * 0.3);
  }
}

class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl()
      : up_(register_module("up", torch::nn::Linear(12, 15))),
        down_(register_module("down", torch::nn::Linear(15, 12))),
        idle_(register_module("idle", torch::nn::Linear(3, 5))),
        frozen_(register_parameter("frozen", torch::ones({12}), /*requires_grad=*/false)) {}

  at::Tensor forward(const at::Tensor& x) {
    if (probe) probe();
    auto y = x + down_(torch::tanh(up_(x * frozen_)));
    if (probe && y.requires_grad()) y.register_hook([probe = probe](const at::Tensor&) { probe(); });
    return y;
  }

  std::function<void()> probe;  ///< called inside forward and backward, where parameters must be whole

 private:
  torch::nn::Linear up_, down_, idle_;
  at::Tensor frozen_;
};
TORCH_MODULE(Layer);

class NetImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kLayers = 3;
  static constexpr std::int64_t kVocabulary = 13;

  explicit NetImpl(double phase = 0) : tokens(register_module("tokens", torch::nn::Embedding(kVocabulary, 12))) {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), Shardable<Layer>()));
    }
    spare = register_module("spare", Shardable<Layer>());
    gain = register_parameter("gain", torch::ones({}));
    fill(*this, phase);
  }

  /// Token numbers [batch] -> logits [batch, vocabulary]
  at::Tensor forward(const at::Tensor& ids) {
    auto hidden = tokens(ids);
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      for (auto& layer : layers) hidden = layer(hidden);
    }
    return torch::linear(hidden * gain, tokens->weight);
  }

  torch::nn::Embedding tokens;
  std::vector<Shardable<Layer>> layers;
  Shardable<Layer> spare{nullptr};  ///< registered, never called
  at::Tensor gain;
  std::int64_t repeats = 1;
};
TORCH_MODULE(Net);

constexpr double kLearningRate = 3e-2;
constexpr std::int64_t kBatch = 12;  ///< divides by every world that is tested

/// Inputs and targets of a step: two [kBatch] of token numbers.
inline std::pair<at::Tensor, at::Tensor> batch_of(std::int64_t step) {
  const auto ids = (torch::arange(kBatch) * 5 + step) % NetImpl::kVocabulary;
  return {ids, (ids * 3 + 1) % NetImpl::kVocabulary};
}

inline at::Tensor loss_of(Shardable<Net>& net, std::int64_t step = 0) {
  const auto [ids, targets] = batch_of(step);
  return torch::nn::functional::cross_entropy(net(ids), targets);
}

struct Loop {
  std::int64_t steps = 10;
  std::int64_t micro_batches = 1;
  bool sync_every_micro_batch = false;
  bool set_micro_batch = false;  ///< tell the core which micro-batch it is, instead of when to reduce
  bool set_to_none = true;
  std::int64_t repeats = 1;
  double clip = 0;
};

struct Outcome {
  std::vector<double> losses;          ///< mean over the global batch
  std::vector<at::Tensor> parameters;  ///< whole, after the last step
  TrafficReport traffic;               ///< of the steps alone
};

/// Trains a new Net as one rank of `world`. `probe` is called in every layer's forward and backward, and before steps.
inline Outcome train(const World& world, const Policy& policy, const Loop& loop = {},
                     const std::function<void()>& probe = {}) {
  auto groups = make_groups(world, make_mesh(policy, world.size));
  Shardable<Net> net;
  net->repeats = loop.repeats;
  for (auto& layer : net->layers) layer->probe = probe;
  auto parallel = parallelize(*net, groups, policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
  *groups.traffic = {};

  Outcome outcome;
  const auto rows = kBatch / world.size / loop.micro_batches;
  auto losses = torch::zeros({loop.steps}, torch::kFloat64);
  for (std::int64_t step = 0; step < loop.steps; ++step) {
    optimizer.zero_grad(loop.set_to_none);
    const auto [ids, targets] = batch_of(step);
    for (std::int64_t micro = 0; micro < loop.micro_batches; ++micro) {
      if (loop.set_micro_batch) {
        parallel.set_micro_batch(micro, loop.micro_batches);
      } else {
        parallel.set_requires_gradient_sync(loop.sync_every_micro_batch || micro + 1 == loop.micro_batches);
      }
      const auto first = (world.rank * loop.micro_batches + micro) * rows;
      auto loss = torch::nn::functional::cross_entropy(net(ids.narrow(0, first, rows)), targets.narrow(0, first, rows));
      losses[step] += loss.detach().to(torch::kFloat64) / loop.micro_batches;
      (loss / loop.micro_batches).backward();
    }
    if (probe) probe();
    if (loop.clip > 0) clip_grad_norm_(parallel, loop.clip);
    optimizer.step();
  }
  outcome.traffic = *groups.traffic;
  groups.world.all_reduce(losses).wait();
  losses /= world.size;
  for (std::int64_t step = 0; step < loop.steps; ++step) outcome.losses.push_back(losses[step].item<double>());
  const auto whole = parallel.gather_parameters();
  for (const auto& parameter : net->parameters()) outcome.parameters.push_back(parameter.detach().clone());
  return outcome;
}

/// `train` on `size` ranks as threads; rank 0's outcome, after checking that all ranks ended with the same parameters.
inline Outcome train_on_ranks(std::int64_t size, const Policy& policy, const Loop& loop = {}) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  on_ranks(size,
           [&](const World& world) { outcomes[static_cast<std::size_t>(world.rank)] = train(world, policy, loop); });
  for (const auto& outcome : outcomes) {
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i) {
      CHECK(outcome.parameters[i].equal(outcomes[0].parameters[i]));
    }
  }
  return outcomes[0];
}

/// The reference of all comparisons.
inline const Outcome& one_process() {
  static const Outcome outcome = train({}, {.method = ParallelMethod::None});
  return outcome;
}

/// Losses agree within 1e-5 relative, parameters within what ten AdamW steps make of that.
inline void check_same(const Outcome& got, const Outcome& expected) {
  REQUIRE(got.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(got.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
  }
  REQUIRE(got.parameters.size() == expected.parameters.size());
  for (std::size_t i = 0; i < got.parameters.size(); ++i) {
    CAPTURE(i);
    CHECK(got.parameters[i].allclose(expected.parameters[i], 1e-3, 1e-5));
  }
}

/// Of the memory behind `tensor`; 0 when it is freed.
inline std::size_t bytes_of(const at::Tensor& tensor) {
  auto* storage = tensor.storage().unsafeGetStorageImpl();
  return storage->_mutable_data_ptr_no_checks().get() ? storage->nbytes() : 0;
}

}  // namespace sealift::test
