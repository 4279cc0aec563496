// SPDX-License-Identifier: Apache-2.0
// A step with a loss or gradient that is not finite on one rank of two: it is that rank that is named, by all.
// job_test.cpp has one process; here gradients are summed over ranks before anybody looks, which hides whose it was.
// Threads are the ranks.
#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"
#include "trainer/loop/not_finite.hpp"

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::Net;
using sealift::test::TempDir;

namespace {

/// Two micro-batches; what rank 1 computes in the second is bad.
class BadOnRankOne final : public Job {
 public:
  enum class Fault { Loss, Gradient, None };

  BadOnRankOne(std::int64_t rank, train::Shardable<Net> net, Fault fault)
      : rank_(rank), net_(std::move(net)), fault_(fault) {}

  std::int64_t begin_step() override { return 2; }
  at::Tensor loss_of(std::int64_t number) override {
    const auto loss = sealift::test::loss_of(net_, number);
    if (rank_ != 1 || number != 1 || fault_ == Fault::None) return loss;
    // The root of nothing has a value, and no slope.
    return fault_ == Fault::Loss ? loss * sealift::test::kInfinity : loss + (loss * 0).sqrt();
  }
  StepSums end_step(const EndWishes&) override { return {.loss = 1, .tokens = 1}; }
  std::string rows_of(std::int64_t number) const override { return c10::str(" (row ", 10 * rank_ + number, ")"); }
  const torch::nn::Module& model() const override { return *net_; }
  double rate() const override { return 0.1; }
  bool saves() const override { return false; }
  bool save_is_due() const override { return false; }
  void save() override {}

 private:
  std::int64_t rank_;
  train::Shardable<Net> net_;
  Fault fault_;
};

/// What a run on two ranks says; the same on both.
std::string said(const train::Policy& policy, BadOnRankOne::Fault fault, double weight = 0) {
  const TempDir folder;
  std::vector<std::string> messages(2);
  sealift::test::on_ranks(2, [&](const train::World& world) {
    train::Shardable<Net> net;
    {
      at::NoGradGuard no_grad;
      if (weight != 0) net->layers[1]->named_parameters()["down.weight"].fill_(weight);
    }
    auto groups = train::make_groups(world, train::make_mesh(policy, 2));
    Place place;
    place.rank = world.rank;
    place.world_size = 2;
    place.policy = policy;
    auto parallel = train::parallelize(*net, groups, policy);
    const OptimizerOptions adamw{.learning_rate = 1, .weight_decay = 0};
    auto shards = decay_groups(parallel.named_shards(), adamw);
    auto training = make_training(place, groups, std::move(parallel), std::move(shards),
                                  {.optimizer = adamw, .clip = 1, .out = folder.path().string(), .steps = 1});
    BadOnRankOne job(world.rank, net, fault);
    Monitor monitor({}, place.watched(2));
    try {
      train_to_the_end(training, job, monitor);
    } catch (const c10::Error& error) {
      messages[static_cast<std::size_t>(world.rank)] = error.what_without_backtrace();
    }
  });
  CHECK(messages[0] == messages[1]);
  return messages[0];
}

void check_has(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, part, " in ", text);
}

}  // namespace

TEST_CASE("the rank whose own loss or gradient was not finite is named, whatever the parallel method") {
  for (const auto& policy : {sealift::test::ddp(), sealift::test::fsdp()}) {
    const auto loss = said(policy, BadOnRankOne::Fault::Loss);
    check_has(loss, "step 1: the norm of the gradients is ");
    check_has(loss, "; rank 1: its loss is inf in micro-batch 1 (row 11)");
    CHECK(loss.find("rank 0") == std::string::npos);
    const auto gradient = said(policy, BadOnRankOne::Fault::Gradient);
    check_has(gradient, "rank 1: first in backward in the gradient of ");
    check_has(gradient, " in micro-batch 1 (row 11)");
    CHECK(gradient.find("rank 0") == std::string::npos);
    CHECK(said(policy, BadOnRankOne::Fault::None).empty());
  }
}

TEST_CASE("where values were not finite before the step, the parameter and the first unit that shows it are named") {
  const auto text = said(sealift::test::fsdp(), BadOnRankOne::Fault::None, sealift::test::kInfinity);
  check_has(text, "the values of layer1.down.weight were not finite before the step");
  check_has(text, " in micro-batch 0 (row 0), first in the output of unit layer1");
}
