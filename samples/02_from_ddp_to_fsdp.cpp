// SPDX-License-Identifier: Apache-2.0
// A job moves from ddp to fsdp by one field: micro-batches, clipping and a replicated embedding stay as they are.
// After 01_parallel_method: the loop that a real job has. Prints what each method sends per step for the same loss.
// The embedding is small and used by every rank, so a policy may leave it whole while the blocks are sharded.
#include <sealift/train.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

using namespace sealift::train;

struct LayerImpl : torch::nn::Module {
  torch::nn::Linear up = register_module("up", torch::nn::Linear(64, 256));
  torch::nn::Linear down = register_module("down", torch::nn::Linear(256, 64));
  at::Tensor forward(const at::Tensor& x) { return x + down(torch::gelu(up(x))); }
};
TORCH_MODULE(Layer);

struct ModelImpl : torch::nn::Module {
  Shardable<torch::nn::Embedding> tokens = register_module("tokens", Shardable<torch::nn::Embedding>(32, 64));
  std::vector<Shardable<Layer>> layers;
  torch::nn::Linear head = register_module("head", torch::nn::Linear(64, 32));
  ModelImpl() {
    for (int i = 0; i < 4; ++i) layers.push_back(register_module("layer" + std::to_string(i), Shardable<Layer>()));
    at::NoGradGuard no_grad;  // the same start on every rank, which as threads would draw from one generator
    for (auto& each : parameters()) each.copy_(torch::sin(torch::arange(each.numel()).view(each.sizes())) * 0.05);
  }
  at::Tensor forward(const at::Tensor& input) {
    auto x = tokens(input);
    for (auto& layer : layers) x = layer(x);
    return head(x);
  }
};
TORCH_MODULE(Model);

/// Thirty steps of four micro-batches as one rank; the last loss, averaged over the ranks.
double train(const std::string& parallel_method, const World& world) {
  at::set_num_threads(1);
  Policy policy{.method = parse_parallel_method(parallel_method),
                .wrap = either(by_path("tokens", {.replicate = true}), by_block())};
  Shardable<Model> model;
  Parallel parallel = parallelize(*model, world, policy);  // starts from rank 0's values
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
  auto loss_sum = torch::zeros({1});
  for (int step = 0; step < 30; ++step) {
    *parallel.groups().traffic = {};
    optimizer.zero_grad();
    loss_sum.zero_();
    for (std::int64_t micro = 0; micro < 4; ++micro) {
      parallel.set_micro_batch(micro, 4);
      const auto input = (torch::arange(8) * 3 + world.rank + 2 * micro) % 32;
      const auto loss = torch::nn::functional::cross_entropy(model(input), (input * 5 + 1) % 32);
      (loss / 4).backward();
      loss_sum += loss.detach() / (4 * world.size);
    }
    clip_grad_norm_(parallel, 1.0);
    optimizer.step();
  }
  const TrafficReport sent = *parallel.groups().traffic;
  parallel.groups().world.all_reduce(loss_sum).wait();
  std::printf("%-4s rank %ld: loss %.7f, bytes per step: gathers %ld, reduce-scatters %ld, all-reduces %ld\n",
              parallel_method.c_str(), world.rank, loss_sum.item<double>(), sent.all_gather.bytes,
              sent.reduce_scatter.bytes, sent.all_reduce.bytes);
  return loss_sum.item<double>();
}

int main() {
  setenv("TORCH_FR_BUFFER_SIZE", "0", 1);  // c10d's flight recorder is not safe for ranks that are threads
  std::vector<double> losses;
  for (const char* method : {"ddp", "fsdp"}) {
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::thread second([&] { train(method, {.store = store, .rank = 1, .size = 2}); });
    losses.push_back(train(method, {.store = store, .rank = 0, .size = 2}));
    second.join();
  }
  return std::abs(losses[0] - losses[1]) <= 1e-5 * std::abs(losses[0]) ? 0 : 1;
}
