// SPDX-License-Identifier: Apache-2.0
// A rank that trains, saves and loads, for the tests of checkpoints and exports.
// The model is fixture.hpp's with a buffer, so scalars, frozen, uneven and never called parameters are all saved.
// Groups with and without weight decay are made by name, as a program would.
#pragma once

#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"

namespace sealift::test {

class BufferedNetImpl : public NetImpl {
 public:
  explicit BufferedNetImpl(double phase = 0)
      : NetImpl(phase), seen(register_buffer("seen", torch::zeros({2}, torch::kInt64))) {}
  at::Tensor seen;
};
TORCH_MODULE(BufferedNet);

inline torch::optim::AdamW make_adamw(const Parallel& parallel, bool amsgrad = false) {
  std::vector<at::Tensor> decay, keep;
  for (const auto& [name, shard] : parallel.named_shards()) (name.ends_with("weight") ? decay : keep).push_back(shard);
  const auto group = [&](std::vector<at::Tensor> shards, double weight_decay) {
    return torch::optim::OptimizerParamGroup(
        std::move(shards), std::make_unique<torch::optim::AdamWOptions>(
                               torch::optim::AdamWOptions(kLearningRate).weight_decay(weight_decay).amsgrad(amsgrad)));
  };
  return torch::optim::AdamW({group(decay, 0.1), group(keep, 0.0)});
}

/// The same rank with a part of the store of its own, so that a thread's second groups do not meet its first.
inline World own_store(World world) {
  thread_local std::int64_t made = 0;
  world.store = c10::make_intrusive<c10d::PrefixStore>("trainee" + std::to_string(made++), world.store);
  return world;
}

/// One rank with its model and optimizer.
struct Trainee {
  Trainee(const World& world, const Policy& policy, double phase = 0, bool amsgrad = false)
      : world(world),
        net(phase),
        parallel(parallelize(*net, make_groups(own_store(world), make_mesh(policy, world.size)), policy)),
        optimizer(make_adamw(parallel, amsgrad)) {}

  /// Trains steps [first, last); the mean loss of each over the global batch.
  std::vector<double> train(std::int64_t first, std::int64_t last) {
    std::vector<double> losses;
    const auto rows = kBatch / world.size;
    for (auto step = first; step < last; ++step) {
      optimizer.zero_grad();
      const auto [ids, targets] = batch_of(step);
      // On eight ranks the last one or two rows are not used, the same on every rank.
      auto loss = torch::nn::functional::cross_entropy(net(ids.narrow(0, world.rank * rows, rows)),
                                                       targets.narrow(0, world.rank * rows, rows));
      loss.backward();
      optimizer.step();
      net->seen += 1;
      auto sum = loss.detach().to(torch::kFloat64).view({1});
      parallel.groups().world.all_reduce(sum).wait();
      losses.push_back(sum.item<double>() / static_cast<double>(world.size));
    }
    return losses;
  }

  /// Every parameter whole, by name.
  std::map<std::string, at::Tensor> whole() {
    std::map<std::string, at::Tensor> result;
    const auto gathered = parallel.gather_parameters();
    for (const auto& item : net->named_parameters()) result[item.key()] = item.value().detach().clone();
    return result;
  }

  /// Every optimizer state whole, by parameter and name; steps under "step".
  std::map<std::string, at::Tensor> whole_state() {
    std::map<std::string, at::Tensor> result;
    for (const auto& parameter : parallel.parameters()) {
      const auto state = parameter.shard.requires_grad() ? parameter_state(optimizer, parameter.shard) : std::nullopt;
      for (const std::string name : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"}) {
        auto all = torch::zeros({c10::multiply_integers(parameter.sizes)}, torch::kFloat64);
        auto mine = all.narrow(0, parameter.offset, parameter.shard.numel());
        if (state && name == "step") mine.fill_(state->step);
        if (state) {
          for (const auto& [key, tensor] : state->tensors) {
            if (key == name) mine.copy_(tensor.reshape({-1}));
          }
        }
        if (!parameter.replicated) parallel.groups().shard.all_reduce(all).wait();
        result[parameter.name + "/" + name] = all;
      }
    }
    return result;
  }

  std::filesystem::path save(const std::filesystem::path& folder, std::int64_t step, SaveOptions options = {}) {
    return save_checkpoint(folder, *net, parallel, &optimizer, state(step), options);
  }
  TrainingState load(const std::filesystem::path& path) { return load_checkpoint(path, *net, parallel, &optimizer); }

  static TrainingState state(std::int64_t step) {
    return {.step = step, .sampler_position = step * kBatch, .seed = 7, .notes = {{"who", "test"}}};
  }

  World world;
  Shardable<BufferedNet> net;
  Parallel parallel;
  torch::optim::AdamW optimizer;
};

inline Policy none() {
  return {.method = ParallelMethod::None};
}

inline void check_equal(const std::map<std::string, at::Tensor>& got,
                        const std::map<std::string, at::Tensor>& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    CAPTURE(name);
    CHECK(got.at(name).equal(tensor));
  }
}

}  // namespace sealift::test
