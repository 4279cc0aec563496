// SPDX-License-Identifier: Apache-2.0
// Losses, norms and metrics that are NaN or infinite: what a run writes of them, goes on with, and calls its best.
// They were written as JSON's null, by which the checkpoint of such a run was damaged when it was read.
// fine_tune_test.py does it with the program; here each writer and reader is by itself.
#include "tests/support/temp_dir.hpp"
#include "trainer/fine_tune/best_model.hpp"
#include "trainer/monitor/step_log.hpp"
#include "trainer/verification/check.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::read_file;
using sealift::test::TempDir;
using sealift::test::write_file;
namespace fs = std::filesystem;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// One process that trains a matrix, in `position`.
struct Run {
  Run() : optimizer(parallel.shards(), torch::optim::AdamWOptions(0.1)) {}

  void save(const Position& position) {
    train::save_checkpoint(checkpoint_folder(options), *model, parallel, &optimizer,
                           training_state(options, 1, position), {});
  }
  Position load(std::int64_t step) {
    return load_position(checkpoint_folder(options) / train::step_folder(step), options, 1, *model, parallel,
                         optimizer);
  }

  TempDir folder;
  FineTuneOptions options = [&] {
    FineTuneOptions result;
    result.out = folder.path().string();
    result.load_best_model_at_end = true;
    return result;
  }();
  torch::nn::Linear model{2, 2};
  train::Parallel parallel = train::parallelize(
      *model,
      train::make_groups({.store = c10::make_intrusive<c10d::HashStore>(), .rank = 0, .size = 1}, train::Mesh{}), {});
  torch::optim::AdamW optimizer;
};

Position with_evaluations(const std::vector<double>& losses) {
  Position position;
  for (const double loss : losses) {
    position.losses.push_back(1);
    position.evaluations.push_back({++position.step, loss, nlohmann::json::object()});
  }
  position.sampler = {.seed = 1, .epoch = 0, .row = 0, .data = "x"};
  return position;
}

std::int64_t best_step(const std::vector<double>& losses) {
  const auto best = with_evaluations(losses).best();
  return best ? best->step : -1;
}

}  // namespace

TEST_CASE("an evaluation whose loss is not finite is never the best one, and counts as one without a better") {
  CHECK(best_step({kNan, 3, 2}) == 3);  // NaN compares with nothing, so it stayed the best where it came first
  CHECK(best_step({3, kNan, 4}) == 1);
  CHECK(best_step({-kInf, 5, kInf}) == 2);
  CHECK(best_step({kInf, kNan}) == -1);
  CHECK(best_step({}) == -1);
  CHECK(with_evaluations({kNan, 3, kNan, kInf}).without_better() == 2);
  CHECK(with_evaluations({kNan, kNan}).without_better() == 2);
}

TEST_CASE("a run goes on from the checkpoint after an evaluation of NaN, with every number as it was") {
  Run run;
  auto position = with_evaluations({0.5, kNan, kInf, -kInf});
  position.evaluations[1].metrics = {{"accuracy", kNan}, {"margin", 0.25}};
  run.save(position);
  const auto found = run.load(4);
  REQUIRE(found.evaluations.size() == 4);
  CHECK(found.evaluations[0].loss == 0.5);
  CHECK(std::isnan(found.evaluations[1].loss));
  CHECK(found.evaluations[2].loss == kInf);
  CHECK(found.evaluations[3].loss == -kInf);
  CHECK(std::isnan(number_in(found.evaluations[1].metrics.at("accuracy")).value()));
  CHECK(found.evaluations[1].metrics.at("margin") == 0.25);
  CHECK(found.best()->step == 1);
  auto next = found;  // as the run that goes on saves it
  next.step = 5;
  next.losses.push_back(1);
  run.save(next);
  CHECK(run.load(5).evaluations[1].metrics == found.evaluations[1].metrics);
}

TEST_CASE("the null of a checkpoint that an earlier program wrote is NaN; what is no number is damage") {
  const auto damaged = [](const std::string& instead) {
    Run run;
    run.save(with_evaluations({0.5, kNan}));
    const auto index = checkpoint_folder(run.options) / train::step_folder(2) / train::kIndexFile;
    auto text = read_file(index);
    const std::string written = "\\\"nan\\\"";
    REQUIRE(text.find(written) != std::string::npos);
    write_file(index, text.replace(text.find(written), written.size(), instead));
    return run.load(2).evaluations.at(1).loss;
  };
  CHECK(std::isnan(damaged("null")));
  CHECK_THROWS_WITH(damaged("\\\"none\\\""), doctest::Contains("is damaged"));
  CHECK_THROWS_WITH(damaged("[]"), doctest::Contains("is damaged"));
}

TEST_CASE("a run that has no best model yet counts on none") {
  Run run;
  CHECK(best_to_begin_with(run.options, with_evaluations({kNan, kInf})) == -1);
}

TEST_CASE("log.jsonl says which number was not finite, as a text") {
  const TempDir folder;
  {
    StepLog log(folder.path(), 3, 0);
    log.add(1, {.loss = 2, .gradient_norm = kInf, .tokens_per_second = 10}, {{"rewards/margins", kNan}});
    log.write({{"step", 1}, {"eval_loss", -kInf}});
  }
  std::istringstream lines(read_file(folder / "log.jsonl"));
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  const auto step = nlohmann::json::parse(first);
  CHECK(step.at("loss") == 2.0);
  CHECK(step.at("grad_norm") == "inf");
  CHECK(step.at("rewards/margins") == "nan");
  CHECK(number_in(step.at("grad_norm")) == kInf);
  CHECK(nlohmann::json::parse(second).at("eval_loss") == "-inf");
}

TEST_CASE("only numbers, and the three texts, are numbers") {
  CHECK(number_in(nlohmann::json(2)) == 2.0);
  CHECK_FALSE(number_in(nlohmann::json()));
  CHECK_FALSE(number_in(nlohmann::json("1")));
  CHECK_FALSE(number_in(nlohmann::json(true)));
  CHECK(with_all_numbers(nlohmann::json{{"a", {1, kNan, {{"b", kInf}}}}, {"c", "text"}}) ==
        nlohmann::json{{"a", {1, "nan", {{"b", "inf"}}}}, {"c", "text"}});
}

TEST_CASE("results that are not finite agree to no digit with anything, themselves among it") {
  const auto result = [](const nlohmann::json& last) {
    return nlohmann::json{{"parallel_method", "none"},
                          {"world_size", 1},
                          {"losses", {4.0, last}},
                          {"entropy_floor", 1.0},
                          {"configuration", nlohmann::json::object()}};
  };
  for (const nlohmann::json& last : {nlohmann::json(), nlohmann::json("nan"), nlohmann::json("inf")}) {
    const auto report = check({result(last), result(last)}, 1e-4, 1.25);
    CHECK(report.problems.size() == 4);  // each differs, and neither ended near the floor
    CHECK(report.digits == 0);
    CHECK(report.max_relative_difference == kInf);
    CHECK_FALSE(std::isfinite(report.final_loss));
  }
}
