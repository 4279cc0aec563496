// SPDX-License-Identifier: Apache-2.0
// What one step of a decoder asks of its device: operations, and waits of the host.
// Counted on a made device, where an operation that is no view counts one. Who adds an operation to a layer, or a wait,
// raises a number here on purpose; who takes one away lowers it. Kernels are not counted: one operation may be several.
#include "tests/support/ranks.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/tuning/lora.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
namespace made = sealift::test::made;

namespace {

/// A Qwen2-like decoder of `layers` layers.
DecoderConfig config_of(std::int64_t layers) {
  return {.family = "qwen2",
          .vocabulary = 50,
          .width = 16,
          .mlp_width = 24,
          .layers = layers,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 64,
          .windows = std::vector<std::int64_t>(static_cast<std::size_t>(layers), 0),
          .qkv_bias = true,
          .initializer_range = 0.3};
}

/// What the second of two steps counted: one dense causal batch, forward, backward, clipping and AdamW.
made::Counts counts_of_step(std::int64_t layers, bool lora) {
  made::install();
  train::World world{.store = c10::make_intrusive<c10d::HashStore>(), .device = made::device(0)};
  train::Shardable<Decoder> model(config_of(layers));
  {
    at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.uniform_(-0.1, 0.1);
  }
  if (lora) add_lora(*model, {.rank = 4, .target_modules = {"all-linear"}}, 3);
  model->to(world.device);
  const auto groups = train::make_groups(world, train::make_mesh({}, 1), {});
  auto parallel = train::parallelize(*model, groups, {});
  train::FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-3));
  const auto ids = torch::arange(24).remainder(50).view({2, 12});
  const TokenBatch batch{.ids = ids.to(world.device), .labels = ((ids + 1) % 50).to(world.device)};
  for (int step = 0; step < 2; ++step) {
    made::synchronize(world.device);
    made::reset_counts();
    optimizer.zero_grad();
    const auto loss = -std::get<0>(model(batch)).sum() / 24;
    loss.backward();
    clip_grad_norm_(parallel, 1.0);
    optimizer.step();
  }
  return made::counts();
}

/// What a layer adds to `of` a step.
std::int64_t a_layer(bool lora) {
  const auto shallow = counts_of_step(2, lora), deep = counts_of_step(4, lora);
  for (const auto& [name, count] : deep.by_operation) {
    const auto before = shallow.by_operation.find(name);
    const auto more = count - (before == shallow.by_operation.end() ? 0 : before->second);
    if (more > 0) MESSAGE(name << " " << more / 2.0 << " a layer");
  }
  for (const auto& [name, count] : deep.waits) MESSAGE("waits in " << name << ": " << count);
  CHECK(deep.waits == shallow.waits);
  MESSAGE("a layer " << (deep.operations - shallow.operations) / 2.0 << ", the rest "
                     << shallow.operations - (deep.operations - shallow.operations));
  return (deep.operations - shallow.operations) / 2;
}

}  // namespace

TEST_CASE("a layer of a decoder asks a device for no more operations than before") {
  CHECK(a_layer(/*lora=*/false) <= 0);
  CHECK(a_layer(/*lora=*/true) <= 0);
}
