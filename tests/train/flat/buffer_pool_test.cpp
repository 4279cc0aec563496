// SPDX-License-Identifier: Apache-2.0
// buffer_pool.hpp: what the pool keeps and when it frees it, and that no unit reads what another one left in memory,
// even when ranks are slow at the worst places.
#include "tests/train/fixture.hpp"

#include <c10/core/CPUAllocator.h>

#include <random>
#include <thread>

using namespace sealift::test;

namespace {

using Pool = sealift::train::detail::BufferPool;

/// While it lives, memory that units free is filled with NaN.
struct Poisoned {
  Poisoned() { Pool::instance().poison_returned(true); }
  ~Poisoned() { Pool::instance().poison_returned(false); }
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
      CAPTURE(size);
      CAPTURE(reshard);
      Policy policy{.method = ParallelMethod::Fsdp};
      policy.reshard_after_forward = reshard;
      check_same(train_on_ranks(size, policy), expected);
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
