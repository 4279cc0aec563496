// SPDX-License-Identifier: Apache-2.0
// One model, trained on one process, with ddp and with fsdp: only `parallel_method` changes, and the loss does not.
// The smallest program over sealift/train.hpp. Ranks are threads here; processes behave the same (see trainer/).
// Read `train` first: it is a plain LibTorch loop except for `Shardable` and `parallelize`.
#include <sealift/train.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using namespace sealift::train;

class LayerImpl : public torch::nn::Module {
 public:
  LayerImpl() : linear_(register_module("linear", torch::nn::Linear(32, 32))) {}
  at::Tensor forward(const at::Tensor& x) { return x + torch::tanh(linear_(x)); }

 private:
  torch::nn::Linear linear_;
};
TORCH_MODULE(Layer);

class ModelImpl : public torch::nn::Module {
 public:
  ModelImpl() {
    for (int i = 0; i < 3; ++i) layers_.push_back(register_module("layer" + std::to_string(i), Shardable<Layer>()));
    head_ = register_module("head", torch::nn::Linear(32, 1));
    at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {  // the same start on every rank, without a shared random generator
      parameter.copy_(torch::sin(torch::arange(parameter.numel()).view(parameter.sizes()) * 0.7) * 0.2);
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers_) x = layer(x);
    return head_(x);
  }

 private:
  std::vector<Shardable<Layer>> layers_;
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Model);

/// Ten AdamW steps as one rank; the loss over the whole batch after them.
double train(const std::string& parallel_method, const World& world) {
  at::set_num_threads(1);
  const Policy policy{.method = parse_parallel_method(parallel_method)};
  Shardable<Model> model;
  Parallel parallel = parallelize(*model, world, policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));

  const auto x = torch::cos(torch::arange(8 * 32).view({8, 32}) * 0.3);
  const auto y = x.sum(1, true);
  const auto rows = 8 / world.size;  // of the batch, per rank
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const auto mine = x.narrow(0, world.rank * rows, rows);
    torch::mse_loss(model(mine), y.narrow(0, world.rank * rows, rows)).backward();
    optimizer.step();
  }
  at::NoGradGuard no_grad;
  return torch::mse_loss(model(x), y).item<double>();
}

/// Runs `train` with each rank on a thread of its own; rank 0's loss.
double train_on_ranks(const std::string& parallel_method, std::int64_t ranks) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<double> losses(ranks);
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { losses[rank] = train(parallel_method, {.store = store, .rank = rank, .size = ranks}); });
  }
  for (auto& thread : threads) thread.join();
  return losses[0];
}

}  // namespace

int main() {
  setenv("TORCH_FR_BUFFER_SIZE", "0", 1);  // c10d's flight recorder is not safe for ranks that are threads
  const double expected = train_on_ranks("none", 1);
  std::printf("none  x1  loss %.9f\n", expected);
  bool agree = true;
  for (const char* method : {"ddp", "fsdp"}) {
    const double loss = train_on_ranks(method, 2);
    std::printf("%-4s  x2  loss %.9f\n", method, loss);
    agree = agree && std::abs(loss - expected) <= 1e-5 * std::abs(expected);
  }
  return agree ? 0 : 1;
}
