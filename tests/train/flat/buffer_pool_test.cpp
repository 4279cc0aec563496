// SPDX-License-Identifier: Apache-2.0
// buffer_pool.hpp: what the pool keeps and when it frees it, and that no unit reads what another one left in memory,
// even when ranks are slow at the worst places. steady_buffers.hpp: that a model's flats keep their addresses, whatever
// lies between two steps.
#include "tests/train/fixture.hpp"

#include <c10/core/CPUAllocator.h>

#include <random>
#include <thread>

using namespace sealift::test;

namespace {

using Pool = sealift::train::detail::BufferPool;
using Steady = sealift::train::detail::SteadyBuffers;

/// While it lives, memory that units free is filled with NaN.
struct Poisoned {
  Poisoned() { set(true); }
  ~Poisoned() { set(false); }
  static void set(bool on) {
    Pool::instance().poison_returned(on);
    Steady::poison_returned(on);
  }
};

at::Tensor buffer(std::int64_t numel) {
  return sealift::train::detail::flat_buffer(numel, torch::kFloat32);
}

/// Trains with pauses of up to a millisecond in every block's forward and backward, different on every rank.
Outcome train_with_pauses(std::int64_t size, const Policy& policy, const Loop& loop) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  on_ranks(size, [&](const World& world) {
    std::minstd_rand random(static_cast<unsigned>(world.rank + 1));
    const auto pause = [&random] { std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000)); };
    outcomes[static_cast<std::size_t>(world.rank)] = train(world, policy, loop, pause);
  });
  return outcomes[0];
}

/// What a model's loop does between steps and in them, other than the same again.
struct Odd {
  std::int64_t micro_batches = 1;
  bool adapters = false;  ///< all but the biases are frozen
};

using Addresses = std::vector<const void*>;

/// The addresses of what flats took in each step, of parameters in forward and backward, and of gradients, in order.
std::vector<Addresses> addresses_of_steps(const World& world, const Policy& policy, const Odd& odd) {
  auto groups = make_groups(world, make_mesh(policy, world.size));
  Shardable<Net> net;
  for (auto& item : net->named_parameters()) {
    if (odd.adapters && !item.key().ends_with("bias")) item.value().set_requires_grad(false);
  }
  auto parallel = parallelize(*net, groups, policy);
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
  std::vector<Addresses> steps;
  parallel.observe_flat_memory([&](const void* data, std::size_t) { steps.back().push_back(data); });
  for (auto& layer : net->layers) {
    layer->probe = [&steps, &layer] {
      for (const auto& parameter : layer->parameters()) steps.back().push_back(parameter.data_ptr());
    };
  }
  std::size_t made = 0;
  for (std::int64_t step = 0; step < 9; ++step) {
    steps.emplace_back();
    optimizer.zero_grad();
    const auto [ids, targets] = batch_of(step);
    const auto rows = 1 + step % 3;  // of a micro-batch
    for (std::int64_t micro = 0; micro < odd.micro_batches; ++micro) {
      parallel.set_micro_batch(micro, odd.micro_batches);
      torch::nn::functional::cross_entropy(net(ids.narrow(0, 0, rows)), targets.narrow(0, 0, rows)).backward();
    }
    for (const auto& shard : parallel.shards()) {
      if (shard.grad().defined()) steps.back().push_back(shard.grad().data_ptr());
    }
    optimizer.step();
    if (step == 2) made = parallel.flat_memory().size();
    const Addresses taken = steps.back();
    if (step % 2 == 1) {  // evaluations
      at::NoGradGuard no_grad;
      net(ids);
      if (step == 3) {
        const auto whole = parallel.gather_parameters();
        CHECK(parallel.flat_memory().size() >= made);
      }
    }
    steps.back() = taken;
  }
  CHECK(parallel.flat_memory().size() == made);
  parallel.observe_flat_memory({});
  return steps;
}

}  // namespace

TEST_CASE("memory that a flat lets go of is handed out again") {
  Pool::User user;
  Pool::instance().release_kept();  // what was out in the tests before does not count
  buffer(1500).reset();             // so much was once out
  auto first = buffer(1000);
  const auto* data = first.data_ptr();
  CHECK(first.sizes() == at::IntArrayRef{1000});
  first.reset();
  CHECK(Pool::instance().kept_bytes() == 4000);
  auto other_size = buffer(500);
  CHECK(other_size.data_ptr() != data);
  auto second = buffer(1000);
  CHECK(second.data_ptr() == data);
  CHECK(Pool::instance().kept_bytes() == 0);
  second.reset();
  Pool::instance().release_kept();
  CHECK(Pool::instance().kept_bytes() == 0);
}

TEST_CASE("a flat too large for the machine throws, and the pool counts as if it was never asked for") {
  Pool::User user;
  buffer(1000).reset();
  CHECK(Pool::instance().kept_bytes() == 4000);
  CHECK_THROWS(buffer(std::int64_t{1} << 58));
  CHECK(Pool::instance().kept_bytes() == 0);
  buffer(1000).reset();
  buffer(500).reset();
  CHECK(Pool::instance().kept_bytes() == 2000);  // both would be more than was ever out
  Pool::instance().release_kept();
}

TEST_CASE("what the pool keeps and what is out are never more than what was once out together") {
  Pool::User user;
  std::size_t peak = 0;
  for (std::int64_t numel = 1000; numel < 1100; ++numel) {  // a hundred sizes, one at a time
    auto one = buffer(numel);
    peak = std::max(peak, one.nbytes());
    one.reset();
    CHECK(Pool::instance().kept_bytes() <= peak);
  }
}

TEST_CASE("memory that is kept goes with the last flat, and a gradient may outlive it") {
  at::Tensor late;
  {
    Pool::User user, another;
    late = buffer(1000);
    buffer(1000).reset();
    CHECK(Pool::instance().kept_bytes() == 4000);
  }
  CHECK(Pool::instance().kept_bytes() == 0);
  late.fill_(1);
  late.reset();
  CHECK(Pool::instance().kept_bytes() == 0);
}

TEST_CASE("training never reads what another unit left in its memory") {
  const auto expected = train_on_ranks(1, {});
  const Poisoned poisoned;
  for (const std::int64_t size : {2, 3, 4}) {
    for (const bool reshard : {true, false}) {
      for (const bool stable : {false, true}) {
        CAPTURE(size);
        CAPTURE(reshard);
        CAPTURE(stable);
        Policy policy{.method = ParallelMethod::Fsdp};
        policy.reshard_after_forward = reshard;
        policy.stable_addresses = stable;
        check_same(train_on_ranks(size, policy), expected);
      }
    }
  }
}

TEST_CASE("pauses in forward, backward and before the step change no bit, with prefetch and poisoned memory") {
  const Poisoned poisoned;
  for (const std::int64_t size : {2, 4}) {
    for (const std::int64_t depth : {0, 1, 3}) {
      for (const bool set_micro_batch : {false, true}) {
        CAPTURE(size);
        CAPTURE(depth);
        CAPTURE(set_micro_batch);
        Policy policy{.method = ParallelMethod::Fsdp};
        policy.forward_prefetch = policy.backward_prefetch = depth;
        const Loop loop{
            .steps = 4, .micro_batches = 3, .sync_every_micro_batch = true, .set_micro_batch = set_micro_batch};
        const auto calm = train_on_ranks(size, policy, loop);
        const auto paused = train_with_pauses(size, policy, loop);
        CHECK(paused.losses == calm.losses);
        for (std::size_t i = 0; i < calm.parameters.size(); ++i) {
          CHECK(paused.parameters[i].equal(calm.parameters[i]));
        }
      }
    }
  }
}

TEST_CASE("with stable addresses each step finds its flats and gradients where the step two before had them") {
  Policy mixed = fsdp(), kept = fsdp(), bytes = fsdp(), freed = fsdp();
  mixed.precision = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat};
  kept.reshard_after_forward = false;
  bytes.compression = {.gradients = GradientCompression::Bf16, .gather = GatherCompression::Int8};
  freed.keep_gathered = KeepGathered::Never;
  // Without sums over copies: Gloo's workers let go of their buffers when they like.
  int number = 0;
  for (auto policy : {fsdp(), mixed, kept, bytes, freed}) {
    policy.stable_addresses = true;
    ++number;
    for (const Odd& odd : {Odd{}, Odd{.micro_batches = 3}, Odd{.adapters = true}}) {
      on_ranks(2, [&](const World& world) {
        CAPTURE(number);
        CAPTURE(odd.micro_batches);
        CAPTURE(odd.adapters);
        const auto steps = addresses_of_steps(world, policy, odd);
        for (std::size_t step = 5; step < steps.size(); ++step) {
          CHECK(steps[step].size() > 10);
          CHECK(steps[step] == steps[step - 2]);
        }
      });
    }
  }
}

TEST_CASE("of a model's free buffers the oldest is taken, and a gradient may outlive the model") {
  at::DataPtr late;
  std::weak_ptr<Steady> alive;
  {
    const auto steady = std::make_shared<Steady>();
    alive = steady;
    const sealift::train::detail::UseBuffers use(steady);
    auto first = buffer(1000), second = buffer(1000), other = buffer(500);
    const auto *oldest = first.data_ptr(), *newer = second.data_ptr();
    first.reset();
    second.reset();  // came back last
    first = buffer(1000);
    CHECK(first.data_ptr() == oldest);
    CHECK(buffer(1000).data_ptr() == newer);
    CHECK(steady->all().size() == 3);
    steady->release(1);
    CHECK(steady->all().size() == 2);  // the second was free, the others are used
    late = steady->take(100, at::kCPU);
  }
  CHECK(!alive.expired());
  late.clear();
  CHECK(alive.expired());
}
