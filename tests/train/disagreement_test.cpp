// SPDX-License-Identifier: Apache-2.0
// Ranks of one training run that do different things: every rank must end with one clear error, and none may hang.
// The watch itself is tested in rank_watch_test.cpp; here the engine disagrees.
// Two or three ranks each; the time-out is far longer than a case may take.
#include "tests/train/fixture.hpp"

#include <mutex>

using namespace sealift::test;

namespace {

/// Blocks that each rank calls in its own order.
class TowersImpl : public torch::nn::Module {
 public:
  TowersImpl() : head_(register_module("head", torch::nn::Linear(12, 3))) {
    for (const char* name : {"text", "vision"}) towers_.push_back(register_module(name, Shardable<Layer>()));
    fill(*this);
  }
  at::Tensor forward(at::Tensor x, const std::vector<std::size_t>& order) {
    for (const auto i : order) x = towers_[i](x);
    return head_(x);
  }

 private:
  std::vector<Shardable<Layer>> towers_;
  torch::nn::Linear head_;
};
TORCH_MODULE(Towers);

using Orders = std::vector<std::vector<std::size_t>>;  ///< of one step, by rank

/// Trains through `steps` and returns what each rank threw.
std::vector<std::string> errors_of(const Policy& policy, const std::vector<Orders>& steps) {
  std::vector<std::string> errors(2);
  on_ranks(2, [&](const World& world) {
    try {
      Shardable<Towers> towers;
      auto groups = groups_of(world, policy);
      auto parallel = parallelize(*towers, groups, policy);
      for (const auto& step : steps) {
        towers(torch::ones({2, 12}), step[static_cast<std::size_t>(world.rank)]).sum().backward();
      }
      groups.world.barrier();
    } catch (const c10::Error& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what_without_backtrace();
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
  });
  return errors;
}

void check_all_name(const std::vector<std::string>& errors, const std::vector<std::string>& parts) {
  for (const auto& error : errors) {
    CAPTURE(error);
    for (const auto& part : parts) {
      CAPTURE(part);
      CHECK(error.find(part) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("ranks that call units in another order are told which, before anything moves") {
  check_all_name(errors_of(fsdp(), {{{0, 1}, {1, 0}}}), {"'text'", "'vision'"});
}

TEST_CASE("a rank that skips a unit is told, in the first step and after both ways were taken together") {
  const Orders both{{0, 1}, {0, 1}}, one{{0}, {0}}, differ{{0, 1}, {0}};
  check_all_name(errors_of(fsdp(), {differ}), {"'vision'"});
  check_all_name(errors_of(fsdp(), {both, one, both, one, differ}), {"'vision'", "step 4"});
}

TEST_CASE("a parameter that only one rank used is named under ddp and fsdp, with the setting that allows it") {
  const auto errors = errors_of(ddp(), {{{0, 1}, {0}}});
  const auto all = errors[0] + errors[1];
  CAPTURE(all);
  CHECK(all.find("vision.up.weight") != std::string::npos);
  CHECK(all.find("find_unused_parameters") != std::string::npos);
  for (const auto& error : errors) CHECK_FALSE(error.empty());
}

TEST_CASE("with find_unused_parameters ddp goes on where one rank skips a block, as often as it likes") {
  auto policy = ddp();
  policy.find_unused_parameters = true;
  policy.first_bucket_bytes = policy.bucket_bytes = 256;
  for (const auto& error : errors_of(policy, {{{0, 1}, {0}}, {{0}, {1}}, {{1, 0}, {0, 1}}, {{0}, {0}}})) {
    CHECK(error.empty());
  }
}

TEST_CASE("a rank whose own code throws takes the others with it, with its reason, over 3 ranks") {
  std::vector<std::string> errors(3);
  on_ranks(3, [&](const World& world) {
    Shardable<Towers> towers;
    auto groups = groups_of(world, fsdp());
    auto parallel = parallelize(*towers, groups, fsdp());
    try {
      for (int step = 0; step < 3; ++step) {
        if (step == 2 && world.rank == 1) throw std::runtime_error("the data loader lost its disk");
        towers(torch::ones({2, 12}), std::vector<std::size_t>{0, 1}).sum().backward();
      }
    } catch (const std::exception& error) {
      groups.report_failure(error.what());
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
  });
  check_all_name({errors[0], errors[2]}, {"rank 1", "the data loader lost its disk", "step 2"});
}

TEST_CASE("steady training compares nothing between ranks") {
  on_ranks(2, [](const World& world) {
    for (const auto& policy : {fsdp(), ddp()}) {
      Shardable<Towers> towers;
      auto groups = groups_of(world, policy);
      auto parallel = parallelize(*towers, groups, policy);
      const auto step = [&] { towers(torch::ones({2, 12}), std::vector<std::size_t>{0, 1}).sum().backward(); };
      for (int warm = 0; warm < 3; ++warm) step();
      const auto before = groups.world.order_checks() + groups.shard.order_checks();
      for (int more = 0; more < 5; ++more) step();
      CHECK(groups.world.order_checks() + groups.shard.order_checks() == before);
    }
  });
}
