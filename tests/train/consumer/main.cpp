// SPDX-License-Identifier: Apache-2.0
// A user's first program: a module of LibTorch's own, held in Shardable, trained for a step.
// Built against the installed headers alone; that it links is most of the test.
// One process, so it needs no launcher.
#include <sealift/train.hpp>

#include <iostream>

int main() {
  using namespace sealift::train;
  const Policy policy{.method = ParallelMethod::Fsdp};
  const World world = connect(parse_launch());
  Shardable<torch::nn::Linear> model(4, 1);
  auto parallel = parallelize(*model, make_groups(world, make_mesh(policy, world.size)), policy);
  torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
  const auto x = torch::ones({8, 4});
  // So far from where any start is that no step of 1e-2 reaches past it.
  const auto loss = [&] { return (model(x) - 10).square().mean(); };
  const auto before = loss();
  before.backward();
  optimizer.step();
  const auto after = loss();
  std::cout << before.item<float>() << " -> " << after.item<float>() << '\n';
  return after.item<float>() < before.item<float>() ? 0 : 1;
}
