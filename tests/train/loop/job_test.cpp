// SPDX-License-Identifier: Apache-2.0
// The loop and a job that writes down what it is asked: the order, where it goes on, when it ends, what an error says.
// The jobs of the program are run by trainer_test.sh and fine_tune_test.py; here the loop is by itself.
// One process and one matrix, whose loss is the sum of its elements: a gradient of ones.
#include "tests/support/temp_dir.hpp"
#include "trainer/loop/loop.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <set>
#include <thread>

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

  OnNonFinite on_nonfinite = OnNonFinite::Stop;

  Training training() {
    auto parallel = train::parallelize(*model, world, place.policy);
    const OptimizerOptions adamw{.learning_rate = 1, .weight_decay = 0};
    auto groups = decay_groups(parallel.named_shards(), adamw);
    return make_training(place, world, std::move(parallel), std::move(groups),
                         {.optimizer = adamw,
                          .clip = clip,
                          .out = folder.path().string(),
                          .steps = steps,
                          .on_nonfinite = on_nonfinite});
  }
};

class Written final : public Job {
 public:
  explicit Written(Training& training, torch::nn::Linear model) : training_(training), model_(std::move(model)) {}

  std::vector<std::string> asked;
  std::int64_t stop_after = 0, micro_batches = 1;
  std::int64_t bad_step = 0, told_in = 0;  ///< steps whose gradients are not finite; in which SIGTERM comes
  std::set<std::int64_t> due;              ///< steps after which a checkpoint is due
  std::set<std::int64_t> full;             ///< steps after which the disk is full
  std::int64_t saved = 0;                  ///< the last step that was saved
  double loss = 2;
  bool fails = false;

  std::int64_t begin_step() override {
    note("begin");
    return micro_batches;
  }
  at::Tensor loss_of(std::int64_t number) override {
    note("loss " + std::to_string(number));
    TORCH_CHECK(!fails, "no loss today");
    if (training_.position.step + 1 == told_in) raise(SIGTERM);
    const bool bad = training_.position.step + 1 == bad_step && number == micro_batches - 1;
    const auto sum = model_->weight.sum() / static_cast<double>(micro_batches);
    return bad ? sum * std::numeric_limits<double>::infinity() : sum;
  }
  void end_micro_batch() override { note("backward is done"); }
  StepSums end_step(const EndWishes& mine) override {
    note("sums");
    return {.loss = loss, .tokens = 7, .metrics = {{"accuracy", 0.5}}, .ends = mine};
  }
  const torch::nn::Module& model() const override { return *model_; }
  std::string rows_of(std::int64_t number) const override { return " (row " + std::to_string(number) + ")"; }
  double rate() const override { return 0.25; }
  std::optional<nlohmann::ordered_json> more_of(const StepOutcome& outcome) const override {
    if (training_.position.step % 2 == 0) return {};
    return nlohmann::ordered_json{{"rate", outcome.rate}, {"metrics", outcome.metrics}};
  }
  void after_step(StepLog* log) override {
    note(log ? "after, lines " + std::to_string(lines()) : "after");
    training_.position.stopped = training_.position.step == stop_after;
  }
  bool saves() const override { return !due.empty(); }
  bool save_is_due() const override { return due.contains(training_.position.step); }
  void save() override {
    const auto step = training_.position.step;
    const auto text = c10::str("save", full.contains(step) ? ", in vain" : "");
    note(text);
    if (full.contains(step)) throw train::SaveFailed("the disk is full");
    saved = step;
  }
  bool roll_back() override {
    if (saved == 0) return false;
    note("back");
    training_.position.step = saved;
    training_.position.losses.resize(static_cast<std::size_t>(saved));
    bad_step = 0;  // of other rows
    return true;
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
  job.due = {2};
  run(training, job);
  CHECK(job.asked == std::vector<std::string>{"0 begin", "0 loss 0", "0 backward is done", "0 loss 1",
                                              "0 backward is done", "0 sums", "1 after, lines 1",  //
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

namespace {

std::vector<std::string> notes_with(const Written& job, const std::string& part) {
  std::vector<std::string> found;
  for (const auto& note : job.asked) {
    if (note.find(part) != std::string::npos) found.push_back(note);
  }
  return found;
}

}  // namespace

TEST_CASE("a save that fails ends nothing: it is tried again after 1, 2, 4 steps, and when the next one is due") {
  Parts parts(12);
  auto training = parts.training();
  Written job(training, parts.model);
  job.due = {2, 6, 12};
  job.full = {2, 3, 5, 6, 8};
  run(training, job);
  CHECK(notes_with(job, "save") == std::vector<std::string>{"2 save, in vain", "3 save, in vain", "5 save, in vain",
                                                            "6 save, in vain", "12 save"});
  CHECK(training.position.step == 12);
  CHECK(training.failed_saves == std::vector<std::int64_t>{2, 3, 5, 6});
  CHECK(training.saved_after == 12);
  nlohmann::ordered_json result;
  add_ending(training, result);
  CHECK(result.at("finished") == true);
  CHECK(result.at("failed_saves") == nlohmann::json{2, 3, 5, 6});
}

TEST_CASE("a gradient that is not finite is found before the optimizer acts, with the rank, the unit and the rows") {
  Parts parts(3, /*clip=*/1);
  auto training = parts.training();
  Written job(training, parts.model);
  job.micro_batches = 2;
  job.bad_step = 2;
  std::string message;
  try {
    run(training, job);
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }
  for (const auto* part : {"step 2: the norm of the gradients is", "rank 0: ", "in micro-batch 1 (row 1)",
                           "in the gradient of weight", "nothing of it was learned", "on_nonfinite = skip"}) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, part, " in ", message);
  }
  CHECK(training.position.step == 1);
  CHECK(parts.model->weight.allclose(torch::full({3, 2}, -0.25), 1e-4));  // as step 1 left it
}

TEST_CASE("on_nonfinite skip leaves the step out and goes on; ten in a row end the run") {
  Parts parts(3);
  parts.on_nonfinite = OnNonFinite::Skip;
  auto training = parts.training();
  Written job(training, parts.model);
  job.bad_step = 2;
  run(training, job);
  CHECK(training.position.step == 3);
  CHECK(training.position.skipped == 1);
  CHECK(parts.model->weight.allclose(torch::full({3, 2}, -0.5), 1e-4));  // two steps of 0.25

  Parts more(20);
  more.on_nonfinite = OnNonFinite::Skip;
  auto hopeless = more.training();
  Written bad(hopeless, more.model);
  bad.loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(run(hopeless, bad), doctest::Contains("10th such step in a row"));
  CHECK(more.model->weight.equal(torch::zeros({3, 2})));
}

TEST_CASE("on_nonfinite rollback goes back to the last checkpoint, and is refused where there is none") {
  Parts parts(5);
  parts.on_nonfinite = OnNonFinite::Rollback;
  auto training = parts.training();
  Written job(training, parts.model);
  job.due = {2};
  job.bad_step = 4;
  run(training, job);
  CHECK(notes_with(job, "back").back() == "4 backward is done");
  CHECK(notes_with(job, "begin") ==
        std::vector<std::string>{"0 begin", "1 begin", "2 begin", "3 begin", "2 begin", "3 begin", "4 begin"});
  REQUIRE(training.rolled_back.size() == 1);
  CHECK(training.rolled_back[0].from == 4);
  CHECK(training.rolled_back[0].to == 2);

  Parts none(5);
  none.on_nonfinite = OnNonFinite::Rollback;
  auto early = none.training();
  Written first(early, none.model);
  first.bad_step = 1;
  CHECK_THROWS_WITH(run(early, first), doctest::Contains("no checkpoint yet to go back to"));
}

TEST_CASE("SIGTERM lets the step end, saves and leaves the loop; afterwards the signal is what it was") {
  Parts parts(9);
  auto training = parts.training();
  Written job(training, parts.model);
  job.due = {9};
  job.told_in = 3;
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  run(training, job);
  CHECK(training.position.step == 3);
  CHECK(notes_with(job, "save") == std::vector<std::string>{"3 save"});
  nlohmann::ordered_json result;
  add_ending(training, result);
  CHECK(result.at("finished") == false);
  CHECK(result.at("ended_by") == "SIGTERM");
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  CHECK((after.sa_handler == before.sa_handler));
}

TEST_CASE("a run whose time is over ends after the step, and one that saves nothing says that there is no checkpoint") {
  Parts parts(9);
  auto training = parts.training();
  training.options.time_limit = 1;  // this process is older, or will be: the first step counts too
  Written job(training, parts.model);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  run(training, job);
  CHECK(training.position.step == 1);
  CHECK(notes_with(job, "save").empty());
  REQUIRE(training.ended_by);
  CHECK(std::string(training.ended_by->cause()) == "time_limit");
  CHECK(training.saved_after == 0);
}
