// SPDX-License-Identifier: Apache-2.0
// Jobs that never ran are judged: where they part is named, and a rank whose process was killed before the ranks that
// noticed.
#include "verify/training/curves.hpp"

#include "tests/verify/verdict/english.hpp"
#include "verify/training/methods.hpp"
#include "verify/training/plan.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace sealift::verify;
using nlohmann::json;

namespace {

json ran_method(std::vector<double> losses, std::vector<double> norms, const std::string& method = "fsdp") {
  return {{"ranks", 2},
          {"norms", norms},
          {"result",
           {{"parallel_method", method},
            {"world_size", 2},
            {"losses", losses},
            {"entropy_floor", 1.0},
            {"configuration", {{"steps", "3"}}}}}};
}

Measured measured_of(std::int64_t rank, json values) {
  return {rank, "node" + std::to_string(rank), "cuda:0", {}, {}, std::move(values)};
}

/// Judged as a method of two ranks against one process.
Check judged_method(json ours, json reference, double tolerance = 1e-4) {
  ours["reference"] = std::move(reference);
  ours["tolerance"] = tolerance;
  Check check;
  judge_method({measured_of(0, ours), measured_of(1, json::object())}, {"fsdp", " fsdp"}, check);
  return check;
}

}  // namespace

TEST_CASE("a job that agrees with one process passes, with the figures and the curve behind it") {
  const auto check = judged_method(ran_method({4, 3, 2.00001}, {1, 1, 1}), ran_method({4, 3, 2}, {1, 1, 1}, "none"));
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en == "fsdp on 2 ranks and one process agree over 3 steps (losses to 5e-06)");
  CHECK(!check.reason.zh.empty());
  REQUIRE(check.figures.size() == 3);
  CHECK(check.figures[0].at_most == 1e-4);
  REQUIRE(check.graphs.size() == 1);
  REQUIRE(check.graphs[0].curves.size() == 3);  // and the entropy of the data
  CHECK(check.graphs[0].curves[0].expected);
  CHECK(check.graphs[0].curves[1].points.at(2) == std::pair(3.0, 2.00001));
}

TEST_CASE("the first step that differs is named, of losses and of gradient norms") {
  auto check = judged_method(ran_method({4, 3.1, 2.5}, {1, 1, 1}), ran_method({4, 3, 2}, {1, 1, 1}));
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.starts_with("fsdp on 2 ranks and one process part in step 2: loss 3.1"));
  check = judged_method(ran_method({4, 3, 2}, {1, 1, 1.1}), ran_method({4, 3, 2}, {1, 1, 1}));
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("part in step 3: gradient norm 1.1") != std::string::npos);
}

TEST_CASE("gradient norms may differ by what rounding makes of them, and no more") {
  CHECK(norm_tolerance(0) == 0);
  CHECK(norm_tolerance(1e-6) == doctest::Approx(1e-4));
  CHECK(norm_tolerance(1e-4) == doctest::Approx(1e-2));
  CHECK(norm_tolerance(2e-2) == doctest::Approx(0.2));
  const auto reference = ran_method({4, 3, 2}, {1, 1, 1.8292});
  CHECK(judged_method(ran_method({4, 3, 2}, {1, 1, 1.8323}), reference).outcome == Outcome::Pass);  // as was seen
  CHECK(judged_method(ran_method({4, 3, 2}, {1, 1, 1.85}), reference).outcome == Outcome::Fail);
}

TEST_CASE("a loss that is not finite, a curve that is too short and another job never agree") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto broken = ran_method({4, 3, 2}, {1, 1, 1});
  for (const nlohmann::json& bad :
       {nlohmann::json(), nlohmann::json("nan"), nlohmann::json("inf")}) {  // as JSON has it
    broken["result"]["losses"][1] = bad;
    CHECK(judged_method(broken, broken).outcome == Outcome::Fail);
    auto other = ran_method({4, 3, 2}, {1, 1, 1});
    other["norms"][1] = bad;
    CHECK(judged_method(other, other).outcome == Outcome::Fail);
  }
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(std::isinf(compare({inf}, {inf}, 1).largest));
  CHECK_THROWS_AS(judged_method(ran_method({4, 3}, {1, 1}), ran_method({4, 3, 2}, {1, 1, 1})), std::invalid_argument);
  CHECK(std::isinf(compare({nan}, {nan}, 1).largest));
  auto other = ran_method({4, 3, 2}, {1, 1, 1});
  other["result"]["configuration"]["steps"] = "4";
  CHECK_THROWS_AS(judged_method(other, ran_method({4, 3, 2}, {1, 1, 1})),
                  std::invalid_argument);  // conduct makes it a FAIL
}

TEST_CASE("with a tolerance of 0 the last bit counts") {
  const double next = std::nextafter(2.0, 3.0);
  CHECK(judged_method(ran_method({4, 3, 2}, {1, 1, 1}), ran_method({4, 3, 2}, {1, 1, 1}), 0).outcome == Outcome::Pass);
  CHECK(judged_method(ran_method({4, 3, next}, {1, 1, 1}), ran_method({4, 3, 2}, {1, 1, 1}), 0).outcome ==
        Outcome::Fail);
}

TEST_CASE("jobs that agree and learnt nothing fail by the entropy of the data") {
  const std::vector<double> losses(100, 4.0), norms(100, 1.0);
  const auto check = judged_method(ran_method(losses, norms), ran_method(losses, norms));
  CHECK(check.outcome == Outcome::Fail);
  CHECK(check.reason.en.find("ended at a loss of 4") != std::string::npos);
}

TEST_CASE("of a job in which one rank was killed, that rank is at fault and not those that noticed") {
  const auto noticed = json{{"code", 1}, {"failed", "rank 0: rank 2 left"}};
  const std::vector<Measured> all{measured_of(0, noticed), measured_of(1, noticed),
                                  measured_of(2, {{"code", 137}, {"failed", "it said nothing"}})};
  Check check;
  judge_method(all, {"fsdp", " fsdp"}, check);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == std::vector<std::string>{"rank 2 on node2 (cuda:0)"});
  CHECK(check.reason.en == "rank 2 on node2 (cuda:0): its training job ended with signal 9: it said nothing");
}

TEST_CASE("a misspelt expectation of training is refused, and the batch is one that every world divides") {
  Site site{.expected = {{"training", {{"toleranz", 1}}}}};
  CHECK_THROWS_AS(training_expectation(site), std::invalid_argument);
  site.expected = {{"training", {{"method", "hsdp"}, {"settings", {{"shard_size", 4}}}}}};
  CHECK(training_expectation(site).settings.at("shard_size") == "4");
  for (const std::int64_t ranks : {2, 3, 6, 1000}) {
    site.world_size = ranks;
    CHECK(std::stoll(plain_job(site, "one", "ddp").settings.at("global_batch")) % (2 * ranks) == 0);
  }
  site.world_size = 7;
  CHECK_THROWS_AS(shard_size_of(site, 7), NotRun);
  CHECK(shard_size_of(site, 6) == 2);
}

TEST_CASE(
    "a job that began anew in place of going on from its checkpoint fails, though its curve is the same to the bit") {
  for (const auto& kind : resume_checks()) {
    CAPTURE(kind.name);
    for (const int step : {0, 4}) {
      auto ran = ran_method({3, 2, 1}, {1, 1, 1});
      ran["reference"] = ran_method({3, 2, 1}, {1, 1, 1});
      ran["killed"] = true, ran["of_ranks"] = 2, ran["tolerance"] = 1e-4, ran["result"]["resumed_after"] = step;
      Check check;
      kind.judge({measured_of(0, ran), measured_of(1, {{"killed", true}})}, Site(), check);
      CHECK(check.outcome == (step == 0 ? Outcome::Fail : Outcome::Pass));
      if (step == 0) CHECK(check.reason.en == "the job began anew and not from the checkpoint that was there");
      ran["result"].erase("resumed_after");  // of a sealift-train that does not say it
      Check silent;
      kind.judge({measured_of(0, ran), measured_of(1, {{"killed", true}})}, Site(), silent);
      CHECK(silent.outcome == Outcome::NotRun);
    }
  }
}
