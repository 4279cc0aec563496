// SPDX-License-Identifier: Apache-2.0
// What a fine-tuned model takes on a rank: the formula, against what the allocator counts, and a 7B's figures.
// In memory_test's program, since counting replaces the allocator of the whole process.
#include "tests/support/counting_allocator.hpp"
#include "tests/train/fixture.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/tuning/lora.hpp"
#include "trainer/tuning/qlora.hpp"

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

std::string config_text(std::int64_t width, std::int64_t hidden, std::int64_t layers, std::int64_t heads,
                        std::int64_t kv_heads, std::int64_t vocabulary) {
  return c10::str(R"({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": )", width,
                  R"(, "intermediate_size": )", hidden, R"(, "num_hidden_layers": )", layers,
                  R"(, "num_attention_heads": )", heads, R"(, "num_key_value_heads": )", kv_heads,
                  R"(, "vocab_size": )", vocabulary,
                  R"(, "max_position_embeddings": 64, "hidden_act": "silu", "rms_norm_eps": 1e-6,
                  "tie_word_embeddings": false, "rope_theta": 1000000.0, "dtype": "bfloat16"})");
}

Shardable<Decoder> on_meta(const std::string& config) {
  const MetaDevice meta;
  return Shardable<Decoder>(parse_decoder_config(config, "made"));
}

/// Blocks of two projections and a head, 2.6 million elements in fp32.
class PairImpl : public torch::nn::Module {
 public:
  PairImpl()
      : up(register_module("up_proj", Projection(256, 1024, false))),
        down(register_module("down_proj", Projection(1024, 256, false))) {}
  at::Tensor forward(const at::Tensor& x) { return x + down(torch::tanh(up(x))); }
  Projection up, down;
};
TORCH_MODULE(Pair);

class StackImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kWidth = 256;
  StackImpl() {
    for (int i = 0; i < 5; ++i) pairs.push_back(register_module("pair" + std::to_string(i), Shardable<Pair>()));
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& pair : pairs) x = pair(x);
    return head(x);
  }
  std::vector<Shardable<Pair>> pairs;
  Projection head = register_module("lm_head", Projection(kWidth, 100, false));
};
TORCH_MODULE(Stack);

Policy storing(Policy policy, torch::nn::Module& model) {
  policy.store = store_projections(model);
  return policy;
}

}  // namespace

TEST_CASE("QLoRA of Qwen2.5-7B fits two ranks of 24 GB, and LoRA of it does not fit one") {
  auto model = on_meta(config_text(3584, 18944, 28, 28, 4, 152064));
  add_lora(*model, {.rank = 16, .alpha = 32});
  const auto qlora = tuning_memory(*model, storing(fsdp(), *model), 2);
  const auto alone = tuning_memory(*model, storing(ddp(), *model), 1);
  const auto plain = tuning_memory(*model, fsdp(), 1);
  MESSAGE("QLoRA on 2 ranks: frozen " << qlora.frozen << ", trained " << qlora.trained << ", whole " << qlora.whole);
  MESSAGE("QLoRA on 1 rank: frozen " << alone.frozen << ", trained " << alone.trained << ", whole " << alone.whole);
  MESSAGE("LoRA on 1 rank: " << plain.sum());
  // 6.53e9 elements of projections in 4.125 bits, 1.09e9 of embedding and head in 16, over two ranks.
  CHECK(qlora.frozen == doctest::Approx((6.525e9 * 4.125 / 8 + 1.09e9 * 2) / 2).epsilon(0.01));
  CHECK(qlora.sum() < 24e9);
  CHECK(qlora.sum() < 8e9);
  CHECK(plain.sum() > 15e9);
}

TEST_CASE("what an adapted model keeps, and the most that it takes, counted, is what the formula says") {
  CountingAllocator::install();
  const LoraOptions lora{.rank = 4};
  auto& all = CountingAllocator::all;
  for (const bool encoded : {false, true}) {
    for (const auto& strategy : {fsdp(), ddp(), hsdp(2)}) {
      const auto base = all.live.load();
      on_ranks(2, [&](const World& world) {
        auto groups = groups_of(world, strategy);
        const auto& mine = *CountingAllocator::mine;
        const auto before = mine.live.load();
        auto meta = std::make_optional<MetaDevice>();
        Shardable<Stack> model;
        meta.reset();
        add_lora(*model, lora);
        const auto policy = encoded ? storing(strategy, *model) : strategy;
        const auto expected = tuning_memory(*model, policy, 2);
        InitFunction values(
            [](const std::string&, at::Tensor tensor, at::Generator random) { tensor.normal_(0, 0.02, random); }, 1);
        LoraSource source(values, lora, 1);
        auto parallel = parallelize(*model, groups, policy, &source);
        CAPTURE(encoded);
        // Without gradients and moments yet; padding of flats, and tables, beside it.
        const auto kept = expected.frozen + expected.trained / 4, slack = kept / 50 + (32 << 10);
        const std::int64_t live = mine.live - before;
        CHECK(live >= kept);
        CHECK(live <= kept + slack);
        FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-3));
        // Of both ranks together: they are threads that share the pool of flats, so one holds what the other allocated.
        groups.world.barrier();
        if (world.rank == 0) all.peak = all.live.load();
        groups.world.barrier();
        for (int step = 0; step < 2; ++step) {
          optimizer.zero_grad();
          model(torch::ones({2, StackImpl::kWidth})).sum().backward();
          optimizer.step();
        }
        groups.world.barrier();
        if (world.rank != 0) return;
        const auto peak = (all.peak - base) / 2;
        constexpr std::int64_t kActivations = 128 << 10;
        MESSAGE("kept " << kept << ", formula's most " << expected.sum() << ", counted " << peak);
        CHECK(peak >= kept + expected.whole / 4);
        CHECK(peak <= expected.sum() + slack + kActivations);
      });
    }
  }
}
