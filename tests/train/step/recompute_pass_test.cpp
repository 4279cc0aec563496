// SPDX-License-Identifier: Apache-2.0
// Recomputation with frozen parts: the passes and the traffic of a step are those of the same model without it.
// Where the head is frozen, the first gradient of a pass comes inside the nested backward of a body; a pass that began
// and ended there would reduce once per block.
// LoRA is this shape: frozen weights everywhere, small trainable ones in every recomputed block.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// A frozen matrix and a trainable pair beside it, as LoRA's.
class AdaptedImpl : public torch::nn::Module {
 public:
  AdaptedImpl()
      : base_(register_parameter("base", torch::ones({12, 12}), /*requires_grad=*/false)),
        down_(register_parameter("down", torch::ones({12, 3}))),
        up_(register_parameter("up", torch::ones({3, 12}))) {}

  at::Tensor forward(const at::Tensor& x) { return x + torch::tanh(x.mm(base_) + x.mm(down_).mm(up_)); }

 private:
  at::Tensor base_, down_, up_;
};
TORCH_MODULE(Adapted);

class FrozenHeadImpl : public torch::nn::Module {
 public:
  explicit FrozenHeadImpl(bool recomputes, bool embedding_trains = false)
      : tokens_(register_module("tokens", torch::nn::Embedding(NetImpl::kVocabulary, 12))),
        head_(register_parameter("head", torch::ones({12, NetImpl::kVocabulary}), /*requires_grad=*/false)) {
    for (std::int64_t i = 0; i < 4; ++i) {
      blocks_.push_back(register_module("block" + std::to_string(i), Shardable<Recomputed<Adapted>>()));
      blocks_.back()->recomputes = recomputes;
    }
    tokens_->weight.set_requires_grad(embedding_trains);
    fill(*this);
  }

  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens_(ids);
    for (auto& block : blocks_) x = block(x);
    return x.mm(head_);
  }

 private:
  torch::nn::Embedding tokens_;
  at::Tensor head_;
  std::vector<Shardable<Recomputed<Adapted>>> blocks_;
};
TORCH_MODULE(FrozenHead);

struct Steps {
  std::vector<double> losses;
  TrafficReport traffic;
  std::int64_t passes = 0;  ///< that ended with everything reduced, as the core counts them
};

constexpr std::int64_t kSteps = 4;

Steps train(std::int64_t ranks, const Policy& policy, bool recomputes, bool embedding_trains,
            std::int64_t micro_batches) {
  Steps result;
  on_ranks(ranks, [&](const World& world) {
    auto groups = groups_of(world, policy);
    Shardable<FrozenHead> net(recomputes, embedding_trains);
    auto parallel = parallelize(*net, groups, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
    const auto rows = kBatch / world.size / micro_batches;
    std::vector<double> losses;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      if (step == 1) *groups.traffic = {};  // the first step makes the buckets
      optimizer.zero_grad();
      const auto [ids, targets] = batch_of(step);
      auto sum = torch::zeros({1}, torch::kFloat64);
      for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
        parallel.set_micro_batch(micro, micro_batches);
        const auto first = (world.rank * micro_batches + micro) * rows;
        const auto loss =
            torch::nn::functional::cross_entropy(net(ids.narrow(0, first, rows)), targets.narrow(0, first, rows)) /
            micro_batches;
        loss.backward();
        sum += loss.detach().to(torch::kFloat64);
      }
      optimizer.step();
      const auto traffic = *groups.traffic;
      groups.world.all_reduce(sum).wait();
      *groups.traffic = traffic;
      losses.push_back(sum.item<double>() / static_cast<double>(world.size));
    }
    if (world.rank != 0) return;
    result = {losses, *groups.traffic, groups.watch ? groups.watch->issued().step() : 0};
  });
  return result;
}

}  // namespace

TEST_CASE("a recomputed model with a frozen head reduces in one pass, as the plain one: issue 15, LoRA") {
  for (const bool embedding_trains : {false, true}) {
    for (const std::int64_t micro_batches : {1, 2}) {
      const auto alone = train(1, {}, false, embedding_trains, micro_batches);
      auto in_buckets = ddp();
      in_buckets.first_bucket_bytes = in_buckets.bucket_bytes = 256;  // one for each matrix
      for (const auto& policy : {ddp(), in_buckets, fsdp(), hsdp(2)}) {
        const std::int64_t ranks = policy.method == ParallelMethod::Hsdp ? 4 : 2;
        CAPTURE(std::string(to_string(policy.method)));
        CAPTURE(policy.bucket_bytes);
        CAPTURE(embedding_trains);
        CAPTURE(micro_batches);
        if (kBatch % (ranks * micro_batches) != 0) continue;
        const auto plain = train(ranks, policy, false, embedding_trains, micro_batches);
        const auto got = train(ranks, policy, true, embedding_trains, micro_batches);
        CHECK(got.traffic.all_reduce.calls == plain.traffic.all_reduce.calls);
        CHECK(got.traffic.all_reduce.bytes == plain.traffic.all_reduce.bytes);
        CHECK(got.traffic.reduce_scatter == plain.traffic.reduce_scatter);
        CHECK(got.passes == kSteps);
        CHECK(plain.passes == kSteps);
        for (std::size_t i = 0; i < alone.losses.size(); ++i) {
          CHECK(plain.losses[i] == doctest::Approx(alone.losses[i]).epsilon(1e-5));
          CHECK(got.losses[i] == doctest::Approx(alone.losses[i]).epsilon(1e-5));
        }
      }
    }
  }
}
