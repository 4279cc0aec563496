// SPDX-License-Identifier: Apache-2.0
// What one step of a decoder asks of its device: operations, and waits of the host.
// Counted on a made device, where an operation that is no view counts one. Who adds an operation to a layer, or a wait,
// raises a number here on purpose; who takes one away lowers it. Kernels are not counted: one operation may be several.
#include "tests/support/ranks.hpp"
#include "tests/train/made_device/made_device.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/tuning/lora.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

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

struct StepCounts {
  std::int64_t a_layer = 0, rest = 0;         ///< operations
  std::map<std::string, std::int64_t> waits;  ///< of a step, however many layers
};

/// With SEALIFT_PRINT_OPERATIONS set, the operations of a layer and of the rest by name.
void print(const made::Counts& shallow, const made::Counts& deep) {
  if (!std::getenv("SEALIFT_PRINT_OPERATIONS")) return;
  std::ostringstream lines;
  for (const auto& [name, count] : deep.by_operation) {
    const auto found = shallow.by_operation.find(name);
    const auto few = found == shallow.by_operation.end() ? 0 : found->second;
    lines << "\n" << name << ": " << (count - few) / 2 << " a layer, " << 2 * few - count << " else";
  }
  MESSAGE("operations:" << lines.str());
}

StepCounts counts_of(bool lora) {
  const auto shallow = counts_of_step(2, lora), deep = counts_of_step(4, lora);
  CHECK(deep.waits == shallow.waits);
  print(shallow, deep);
  const auto a_layer = (deep.operations - shallow.operations) / 2;
  return {.a_layer = a_layer, .rest = shallow.operations - 2 * a_layer, .waits = deep.waits};
}

}  // namespace

// LibTorch 2.11; another version may make other operations of one.
TEST_CASE("a step of a decoder asks a device for no more operations and waits than before") {
  const std::map<std::string, std::int64_t> labels{{"nonzero", 1}};  // which tokens have a label
  const std::map<std::string, std::int64_t> both{{"equal", 1},
                                                 {"nonzero", 1}};  // a full step compares two tensors, too
  const auto full = counts_of(/*lora=*/false), lora = counts_of(/*lora=*/true);
  MESSAGE("a layer asks for " << full.a_layer << " operations in a full step, " << lora.a_layer
                              << " with LoRA; the rest of a step for " << full.rest << " and " << lora.rest);
  CHECK(full.a_layer <= 65);
  CHECK(lora.a_layer <= 118);
  CHECK(full.rest <= 63);
  CHECK(lora.rest <= 44);
  CHECK(full.waits == both);
  CHECK(lora.waits == labels);
}
