// SPDX-License-Identifier: Apache-2.0
// The loop and a job that writes down what it is asked: the order, where it goes on, when it ends, what an error says.
// The jobs of the program are run by trainer_test.sh and fine_tune_test.py; here the loop is by itself.
// One process and one matrix, whose loss is the sum of its elements: a gradient of ones.
#include "tests/support/temp_dir.hpp"
#include "trainer/loop/loop.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::TempDir;

namespace {

/// A matrix of zeros in a training that has not begun.
struct Parts {
  explicit Parts(std::int64_t steps, double clip = 0) : steps(steps), clip(clip) {
    torch::NoGradGuard no_grad;
    model->weight.zero_();
  }

  TempDir folder;
  std::int64_t steps;
  double clip;
  torch::nn::Linear model{torch::nn::LinearOptions(2, 3).bias(false)};
  Place place = {};
  train::Groups world =
      train::make_groups({.store = c10::make_intrusive<c10d::HashStore>(), .rank = 0, .size = 1}, train::Mesh{});

  Training training() {
    auto parallel = train::parallelize(*model, world, place.policy);
    const OptimizerOptions adamw{.learning_rate = 1, .weight_decay = 0};
    auto groups = decay_groups(parallel.named_shards(), adamw);
    return make_training(place, world, std::move(parallel), std::move(groups),
                         {.optimizer = adamw, .clip = clip, .out = folder.path().string(), .steps = steps});
  }
};

class Written final : public Job {
 public:
  explicit Written(Training& training, torch::nn::Linear model) : training_(training), model_(std::move(model)) {}

  std::vector<std::string> asked;
  std::int64_t stop_after = 0, micro_batches = 1;
  double loss = 2;
  bool fails = false;

  std::int64_t begin_step() override {
    note("begin");
    return micro_batches;
  }
  at::Tensor loss_of(std::int64_t number) override {
    note("loss " + std::to_string(number));
    TORCH_CHECK(!fails, "no loss today");
    return model_->weight.sum() / static_cast<double>(micro_batches);
  }
  void end_micro_batch() override { note("backward is done"); }
  StepSums end_step() override {
    note("sums");
    return {.loss = loss, .tokens = 7, .metrics = {{"accuracy", 0.5}}};
  }
  double rate() const override { return 0.25; }
  std::optional<nlohmann::ordered_json> more_of(const StepOutcome& outcome) const override {
    if (training_.position.step % 2 == 0) return {};
    return nlohmann::ordered_json{{"rate", outcome.rate}, {"metrics", outcome.metrics}};
  }
  void after_step(StepLog* log) override {
    note(log ? "after, lines " + std::to_string(lines()) : "after");
    training_.position.stopped = training_.position.step == stop_after;
  }
  bool save_if_due() override {
    note("save");
    return false;
  }

  std::int64_t lines() const {
    const auto text = sealift::test::read_file(std::filesystem::path(training_.options.out) / "log.jsonl");
    return std::count(text.begin(), text.end(), '\n');
  }

 private:
  void note(const std::string& what) { asked.push_back(std::to_string(training_.position.step) + " " + what); }

  Training& training_;
  torch::nn::Linear model_;
};

void run(Training& training, Job& job) {
  Monitor monitor({}, training.place.watched(1));
  train_to_the_end(training, job, monitor);
}

}  // namespace

TEST_CASE("the loop asks a job for each step's losses and sums, logs the step, and asks for its checkpoint last") {
  Parts parts(2);
  auto training = parts.training();
  Written job(training, parts.model);
  job.micro_batches = 2;
  run(training, job);
  CHECK(job.asked == std::vector<std::string>{"0 begin", "0 loss 0", "0 backward is done", "0 loss 1",
                                              "0 backward is done", "0 sums", "1 after, lines 1", "1 save",  //
                                              "1 begin", "1 loss 0", "1 backward is done", "1 loss 1",
                                              "1 backward is done", "1 sums", "2 after, lines 1", "2 save"});
  CHECK(training.position.losses == std::vector<double>{2, 2});
}

TEST_CASE("a step is taken with the job's rate, and the log has its norm before clipping and what the job adds") {
  Parts parts(1, /*clip=*/0.1);
  auto training = parts.training();
  Written job(training, parts.model);
  run(training, job);
  // AdamW's first step is the rate in each element, whatever the gradient's size.
  CHECK(parts.model->weight.allclose(torch::full({3, 2}, -0.25), 1e-4));
  const auto line = nlohmann::json::parse(sealift::test::read_file(parts.folder / "log.jsonl"));
  CHECK(line.at("loss") == 2);
  CHECK(line.at("grad_norm").get<double>() == doctest::Approx(std::sqrt(6.0)));
  CHECK(line.at("rate") == 0.25);
  CHECK(line.at("metrics") == nlohmann::json{{"accuracy", 0.5}});
}

TEST_CASE("a run goes on after the steps that are done, and ends early when its job says so") {
  Parts parts(9);
  auto training = parts.training();
  training.position.step = 3;
  training.position.losses = {5, 4, 3};
  Written job(training, parts.model);
  job.stop_after = 5;
  run(training, job);
  CHECK(job.asked.front() == "3 begin");
  CHECK(training.resumed_after == 3);
  CHECK(training.position.losses == std::vector<double>{5, 4, 3, 2, 2});
}

TEST_CASE("what goes wrong in a step names the step, and a loss that is not finite is such a thing") {
  Parts parts(4);
  auto training = parts.training();
  training.position.step = 2;
  Written job(training, parts.model);
  job.loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(run(training, job), doctest::Contains("try a lower learning_rate"));
  CHECK_THROWS_WITH(run(training, job), doctest::Contains("in step 3 of 4"));
  job.fails = true;
  CHECK_THROWS_WITH(run(training, job), doctest::Contains("no loss today"));
  CHECK(training.position.step == 2);
}
