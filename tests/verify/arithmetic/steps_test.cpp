// SPDX-License-Identifier: Apache-2.0
// Steps on a CPU: the same bits each time, and a flipped bit is found where it was flipped.
#include "verify/arithmetic/steps.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/arithmetic/judge.hpp"
#include "verify/arithmetic/rates.hpp"
#include "verify/conduct/processor_kind.hpp"

#include <doctest/doctest.h>

#include <random>

namespace {

using namespace sealift::verify;

const ArithmeticJob kSmall{
    .layers = 2, .width = 32, .mlp_width = 48, .vocabulary = 31, .batch = 2, .time = 12, .steps = 2};

const std::vector<std::string>& right() {
  static const auto digests = digests_of_steps(kSmall, at::kCPU);
  return digests;
}

/// The check's answer when rank 1 of 3 has `digests`.
Check judged(const std::vector<std::string>& digests) {
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    all.push_back({.rank = rank,
                   .host = "here",
                   .device = "cpu",
                   .not_run = {},
                   .error = {},
                   .values = {{"kind", "c"},
                              {"torch", "t"},
                              {"job", to_json(kSmall)},
                              {"digests", rank == 1 ? digests : right()},
                              {"runs", 2},
                              {"again", nullptr}}});
  }
  Check check;
  judge_same_bits(all, {}, check);
  return check;
}

TEST_CASE("the same steps give the same bits in 20 runs, whatever the threads around") {
  REQUIRE(right().size() == places_of(kSmall).size());
  for (int run = 0; run < 20; ++run) {
    at::set_num_threads(1 + run % 3);
    CHECK(digests_of_steps(kSmall, at::kCPU) == right());
    CHECK(at::get_num_threads() == 1 + run % 3);
  }
  auto other = kSmall;
  other.seed = 2;
  CHECK(first_difference(digests_of_steps(other, at::kCPU), right()) == 0);
}

TEST_CASE("a flipped bit in a weight, an activation or a gradient of any unit and step is named by rank and place") {
  std::vector<Place> places;
  for (const auto& place : places_of(kSmall)) {
    const bool possible =
        place.phase == Phase::Weights || place.phase == Phase::Forward || place.phase == Phase::Gradient;
    if (possible) places.push_back(place);
  }
  std::mt19937_64 random(20);
  for (int draw = 0; draw < 60; ++draw) {
    const FlippedBit fault{places[random() % places.size()], static_cast<std::int64_t>(random() % 100000),
                           static_cast<int>(random() % 32)};
    CAPTURE(text_of(fault.where).en);
    CAPTURE(fault.element);
    CAPTURE(fault.bit);
    const auto check = judged(digests_of_steps(kSmall, at::kCPU, fault));
    CHECK(english(check.at_fault) == std::vector<std::string>{"rank 1 on here (cpu)"});
    CHECK(check.reason.en.find("the first difference is " + text_of(fault.where).en) != std::string::npos);
  }
}

TEST_CASE("steps are repeated until the time is over, and a device that is wrong once is caught in that run") {
  const auto twice = repeat_steps(kSmall, at::kCPU, std::chrono::seconds(0));
  CHECK(twice.runs == 2);
  CHECK(twice.digests == right());
  CHECK_FALSE(twice.again);
  CHECK(repeat_steps(kSmall, at::kCPU, std::chrono::milliseconds(300)).runs > 2);
  const FlippedBit bit{{"bf16", 1, Phase::Forward, "layers.1.mlp"}, 5, 3};
  const auto caught = repeat_steps(kSmall, at::kCPU, std::chrono::seconds(60), HeatFault{4, bit});
  CHECK(caught.runs == 4);
  REQUIRE(caught.again);
  CHECK(places_of(kSmall).at(*caught.again) == bit.where);
  CHECK_FALSE(repeat_steps(kSmall, at::kCPU, std::chrono::seconds(0), HeatFault{4, bit}).again);  // quick misses it
}

TEST_CASE("under load the round in which a bit flips is found, and none without a fault") {
  auto job = kSmall;
  job.dtypes = {"bf16"};
  const auto clean = burn_device(job, at::kCPU, std::chrono::milliseconds(200), 2);
  CHECK(clean.at("fault").is_null());
  CHECK(clean.at("rounds").get<int>() >= 3);
  const Place where{"bf16", 1, Phase::Forward, "layers.1.self_attn"};
  const auto burnt = burn_device(job, at::kCPU, std::chrono::minutes(1), 2, HeatFault{5, {where, 7, 3}});
  CHECK(burnt.at("fault").at("round") == 5);
  CHECK(places_of(job).at(burnt.at("fault").at("place").get<std::size_t>()) == where);
}

TEST_CASE("same_bits calls a processor as golden runs do, with the kernels that were chosen for it") {
  CHECK(kind_of_device(at::kCPU) == processor_kind(at::get_cpu_capability()));
}

TEST_CASE("rates of a CPU are positive, and the judge takes them") {
  const auto rates = measure_rates(at::kCPU);
  REQUIRE(rates.at("rates").size() == 3);
  for (const auto& rate : rates.at("rates")) CHECK(rate.at("value").get<double>() > 0);
  Check check;
  judge_rates({{.rank = 0, .host = "h", .device = "cpu", .not_run = {}, .error = {}, .values = rates}},
              nlohmann::json::object(), check);
  CHECK(check.outcome == Outcome::Pass);
}

}  // namespace
