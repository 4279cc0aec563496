// SPDX-License-Identifier: Apache-2.0
// Ranks with different amounts of data against one process with all of it: some run out, or batches differ in tokens.
// Every mesh, with micro-batches, and with a rank that never had a batch.
// The batches that a rank repeats for nothing give infinite gradients here, so that one that leaks is seen.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

using Counts = std::vector<std::int64_t>;  ///< batches of each rank

/// Batch `index` of `rank`: ids and targets, [`tokens`]
std::pair<at::Tensor, at::Tensor> batch_for(std::int64_t rank, std::int64_t index, std::int64_t tokens = 4) {
  const auto ids = (torch::arange(tokens) * 5 + 7 * rank + 3 * index) % NetImpl::kVocabulary;
  return {ids, (ids * 3 + index) % NetImpl::kVocabulary};
}

at::Tensor mean_loss(Shardable<Net>& net, const std::pair<at::Tensor, at::Tensor>& batch) {
  return torch::nn::functional::cross_entropy(net(batch.first), batch.second);
}

at::Tensor summed_loss(Shardable<Net>& net, const std::pair<at::Tensor, at::Tensor>& batch) {
  return torch::nn::functional::cross_entropy(net(batch.first), batch.second,
                                              torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
}

torch::optim::AdamW make_optimizer(const Parallel& parallel) {
  return torch::optim::AdamW(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
}

std::vector<at::Tensor> whole_parameters(Parallel& parallel, Shardable<Net>& net) {
  const auto whole = parallel.gather_parameters();
  std::vector<at::Tensor> result;
  for (const auto& parameter : net->parameters()) result.push_back(parameter.detach().clone());
  return result;
}

bool close(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!got[i].allclose(expected[i], 1e-3, 1e-5)) return false;
  }
  return got.size() == expected.size();
}

/// One process that takes up to `micro` batches of every rank in each step; gradients as `divide_by` says.
std::vector<at::Tensor> train_alone(const Counts& counts, std::int64_t micro, DivideBy divide_by) {
  Shardable<Net> net;
  auto parallel = parallelize(*net, Groups{}, Policy{});
  auto optimizer = make_optimizer(parallel);
  for (std::int64_t first = 0; first < *std::max_element(counts.begin(), counts.end()); first += micro) {
    optimizer.zero_grad();
    at::Tensor sum;
    std::int64_t batches = 0, most = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const auto here = std::clamp<std::int64_t>(counts[rank] - first, 0, micro);
      most = std::max(most, here);
      batches += here;
      for (std::int64_t i = first; i < first + here; ++i) {
        const auto loss = mean_loss(net, batch_for(static_cast<std::int64_t>(rank), i));
        sum = sum.defined() ? sum + loss : loss;
      }
    }
    const auto all = static_cast<std::int64_t>(counts.size()) * most;
    (sum / (divide_by == DivideBy::AllRanks ? all : batches)).backward();
    clip_grad_norm_(parallel, 1);
    optimizer.step();
  }
  return whole_parameters(parallel, net);
}

/// The same as a rank of `world`, which has counts[rank] batches.
std::vector<at::Tensor> train_joined(const World& world, const Policy& policy, const Counts& counts, std::int64_t micro,
                                     DivideBy divide_by) {
  Shardable<Net> net;
  auto parallel = parallelize(*net, groups_of(world, policy), policy);
  auto optimizer = make_optimizer(parallel);
  const auto count = counts[static_cast<std::size_t>(world.rank)];
  std::int64_t next = 0, steps = 0;
  Join join(parallel, divide_by);
  auto last = batch_for(world.rank, 0);
  while (join.next(std::min(micro, count - next))) {
    ++steps;
    optimizer.zero_grad();
    for (std::int64_t m = 0; m < join.micro_batches(); ++m) {
      const bool has_data = join.begin(m);
      CHECK(has_data == (next < count));
      if (has_data) last = batch_for(world.rank, next++);
      (mean_loss(net, last) * (has_data ? 1 : kInfinity) / join.micro_batches()).backward();
    }
    clip_grad_norm_(parallel, 1);
    optimizer.step();
  }
  const auto most = *std::max_element(counts.begin(), counts.end());
  CHECK(steps == (most + micro - 1) / micro);
  CHECK(next == count);
  return whole_parameters(parallel, net);
}

}  // namespace

TEST_CASE("ranks that run out change nothing: the model is that of one process with all batches") {
  for (const auto& [policy, counts] : std::vector<std::pair<Policy, Counts>>{
           {ddp(), {5, 3, 4}}, {fsdp(), {5, 3, 4}}, {fsdp(), {2, 4, 0}}, {ddp(), {0, 3}}, {hsdp(2), {1, 4, 3, 2}}}) {
    for (const std::int64_t micro : {1, 2}) {
      for (const auto divide_by : {DivideBy::BatchesWithData, DivideBy::AllRanks}) {
        CAPTURE(std::string(to_string(policy.method)));
        CAPTURE(micro);
        CAPTURE((divide_by == DivideBy::AllRanks));
        const auto expected = train_alone(counts, micro, divide_by);
        on_ranks(static_cast<std::int64_t>(counts.size()), [&, policy = policy, counts = counts](const World& world) {
          CHECK(close(train_joined(world, policy, counts, micro, divide_by), expected));
        });
      }
    }
  }
}

TEST_CASE("a usual loop joins by one line, and on one process it is the same loop") {
  const auto run = [](const World& world, const Policy& policy, const Counts& counts) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    auto optimizer = make_optimizer(parallel);
    std::int64_t next = 0;
    const auto fetch = [&]() -> std::optional<std::pair<at::Tensor, at::Tensor>> {
      if (next == counts[static_cast<std::size_t>(world.rank)]) return {};
      return batch_for(world.rank, next++);
    };
    auto batch = fetch();
    auto last = *batch;
    Join join(parallel);
    while (join.next(batch.has_value())) {
      if (batch) last = *batch;
      optimizer.zero_grad();
      mean_loss(net, last).backward();
      clip_grad_norm_(parallel, 1);
      optimizer.step();
      batch = fetch();
    }
    return whole_parameters(parallel, net);
  };
  CHECK(close(run({}, {}, {3}), train_alone({3}, 1, DivideBy::BatchesWithData)));
  const auto expected = train_alone({3, 5}, 1, DivideBy::BatchesWithData);
  on_ranks(2, [&](const World& world) { CHECK(close(run(world, fsdp(), {3, 5}), expected)); });
}

TEST_CASE("after Join gradients are the mean over all ranks again, and NaN passes as it should") {
  for (const auto& policy : {ddp(), fsdp()}) {
    on_ranks(2, [&](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelize(*net, groups_of(world, policy), policy);
      const auto norm = [&](double factor) {
        for (auto& shard : parallel.shards()) shard.mutable_grad() = at::Tensor();
        (mean_loss(net, batch_for(world.rank, 0)) * factor).backward();
        return gradient_norm(parallel);
      };
      const double before = norm(1);
      {
        Join join(parallel);
        CHECK(join.next(world.rank == 0));
        norm(world.rank == 0 ? 1 : kInfinity);
        CHECK_FALSE(join.next(0));
        CHECK(norm(1) == before);
        CHECK(std::isnan(norm(std::nan(""))));
        CHECK(join.next(world.rank == 0));
      }
      CHECK(norm(1) == before);
    });
  }
}

TEST_CASE("losses summed over tokens and divided by the tokens of the step are those of one process") {
  constexpr std::int64_t kSteps = 4, kMicro = 2;
  const auto tokens_of = [](std::int64_t rank, std::int64_t step, std::int64_t micro) {
    return 1 + (2 * rank + 3 * micro + step) % 7;
  };
  const auto train = [&](const World& world, const Policy& policy, bool by_tokens) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    auto optimizer = make_optimizer(parallel);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      auto tokens = torch::zeros({1}, torch::kInt64);
      for (std::int64_t micro = 0; micro < kMicro; ++micro) tokens += tokens_of(world.rank, step, micro);
      parallel.groups().world.all_reduce(tokens).wait();
      if (by_tokens) parallel.set_gradient_divide_factor(tokens.item<double>());
      for (std::int64_t micro = 0; micro < kMicro; ++micro) {
        parallel.set_micro_batch(micro, kMicro);
        const auto batch = batch_for(world.rank, step * kMicro + micro, tokens_of(world.rank, step, micro));
        (by_tokens ? summed_loss(net, batch) : mean_loss(net, batch) / kMicro).backward();
      }
      clip_grad_norm_(parallel, 1);
      optimizer.step();
    }
    return whole_parameters(parallel, net);
  };
  const auto train_alone_on = [&](std::int64_t ranks) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, Groups{}, Policy{});
    auto optimizer = make_optimizer(parallel);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      std::vector<at::Tensor> losses;
      std::int64_t tokens = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        for (std::int64_t micro = 0; micro < kMicro; ++micro) {
          const auto here = tokens_of(rank, step, micro);
          losses.push_back(summed_loss(net, batch_for(rank, step * kMicro + micro, here)));
          tokens += here;
        }
      }
      (at::stack(losses).sum() / tokens).backward();
      clip_grad_norm_(parallel, 1);
      optimizer.step();
    }
    return whole_parameters(parallel, net);
  };
  for (const auto& [ranks, policy] : std::vector<std::pair<std::int64_t, Policy>>{
           {1, Policy{}}, {1, ddp()}, {1, fsdp()}, {2, ddp()}, {3, ddp()}, {3, fsdp()}, {4, hsdp(2)}}) {
    CAPTURE(std::string(to_string(policy.method)));
    CAPTURE(ranks);
    const auto expected = train_alone_on(ranks);
    on_ranks(ranks, [&, policy = policy](const World& world) {
      CHECK(close(train(world, policy, true), expected));
      // The mean of the ranks' means is another gradient.
      auto again = world;
      again.store = c10::make_intrusive<c10d::PrefixStore>("means", world.store);
      CHECK_FALSE(close(train(again, policy, false), expected));
    });
  }
}
