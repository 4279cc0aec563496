// SPDX-License-Identifier: Apache-2.0
// Judging of what devices computed and how fast, fed with made measurements.
#include "verify/arithmetic/judge.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/verdict/outliers.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace {

using namespace sealift::verify;
using Json = nlohmann::json;

const ArithmeticJob kJob{.layers = 1, .steps = 2};

std::vector<std::string> right_digests() {
  std::vector<std::string> digests;
  for (std::size_t i = 0; i < places_of(kJob).size(); ++i) digests.push_back("d" + std::to_string(i));
  return digests;
}

Measured device(std::int64_t rank, const std::vector<std::string>& digests, const std::string& kind = "GPU X") {
  return {.rank = rank,
          .host = "host" + std::to_string(rank),
          .device = "cuda:0",
          .not_run = {},
          .error = {},
          .values = {{"kind", kind},
                     {"torch", "2.11"},
                     {"job", to_json(kJob)},
                     {"digests", digests},
                     {"runs", 2},
                     {"again", Json()}}};
}

/// Digests that are others from `place` on, as an error spreads.
std::vector<std::string> wrong_from(std::size_t place, const std::string& mark = "x") {
  auto digests = right_digests();
  for (auto i = place; i < digests.size(); ++i) digests[i] += mark;
  return digests;
}

std::size_t place_of(const Place& place) {
  const auto places = places_of(kJob);
  return static_cast<std::size_t>(std::find(places.begin(), places.end(), place) - places.begin());
}

Check judged(const std::vector<Measured>& all, const std::vector<ArithmeticReference>& references = {}) {
  Check check;
  judge_same_bits(all, references, check);
  return check;
}

TEST_CASE("the places of a job are in the order of the computation: weights, forward, backward in reverse, update") {
  const auto places = places_of(kJob);
  CHECK(places.size() == 2 * 2 * (5 * 7 + 1));
  CHECK(places[0] == Place{"fp32", 0, Phase::Weights, "embed_tokens"});
  CHECK(place_of({"fp32", 0, Phase::Forward, "loss"}) < place_of({"fp32", 0, Phase::Backward, "lm_head"}));
  CHECK(place_of({"fp32", 0, Phase::Gradient, "lm_head"}) < place_of({"fp32", 0, Phase::Backward, "norm"}));
  CHECK(place_of({"fp32", 0, Phase::Update, "embed_tokens"}) < place_of({"fp32", 1, Phase::Weights, "embed_tokens"}));
  CHECK(places.back() == Place{"bf16", 1, Phase::Update, "lm_head"});
}

TEST_CASE(
    "devices of one kind that computed the same pass; one alone passes and the reason says with whom it was not "
    "compared") {
  const auto check =
      judged({device(0, right_digests()), device(1, right_digests()), device(2, wrong_from(0), "GPU Y")});
  CHECK(check.outcome == Outcome::Pass);
  CHECK(check.reason.en.find("3 devices computed 144 digests twice") == 0);
  CHECK(check.reason.en.find("1 had neither a sibling nor a reference") != std::string::npos);
  CHECK(check.at_fault.empty());
}

TEST_CASE("a pass says how often a device may be wrong and still be seen, by the one that made fewest products") {
  CHECK(products_of(kJob) == 2 * 2 * 3 * 8);
  auto longer = device(1, right_digests());
  longer.values["runs"] = 500;
  const auto check = judged({device(0, right_digests()), longer});
  REQUIRE(check.facts.back().name.en == "what this can see");
  CHECK(check.facts.back().value.en.find("in 2 runs each made 192 products with weights, so a device that is wrong "
                                         "once in 64 of them is seen with a chance of 95 %") == 0);
  CHECK(check.facts.back().value.zh.find("192") != std::string::npos);
  const auto both = judged({longer, longer});
  CHECK(both.reason.en.find("computed 144 digests 500 times or more") != std::string::npos);
  CHECK(both.facts.back().value.en.find("once in 16000") != std::string::npos);
}

TEST_CASE("a device that differs from most is named with the first operation that differs") {
  const auto place = place_of({"bf16", 1, Phase::Backward, "layers.0.mlp"});
  const auto check = judged({device(0, right_digests()), device(1, wrong_from(place)), device(2, right_digests())});
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == std::vector<std::string>{"rank 1 on host1 (cuda:0)"});
  CHECK(check.reason.en.find("bf16, step 2, backward: the gradient of the output of layers.0.mlp") !=
        std::string::npos);
  CHECK(check.reason.zh.find("layers.0.mlp") != std::string::npos);
}

TEST_CASE("two devices that differ are both named, and a reference says which is wrong") {
  const auto wrong = device(1, wrong_from(7));
  const auto check = judged({device(0, right_digests()), wrong});
  CHECK(check.at_fault.size() == 2);
  CHECK(check.reason.en.find("no majority says which is right") != std::string::npos);
  const ArithmeticReference reference{"GPU X", "2.11", kJob, right_digests()};
  CHECK(english(judged({device(0, right_digests()), wrong}, {reference}).at_fault) ==
        std::vector<std::string>{"rank 1 on host1 (cuda:0)"});
}

TEST_CASE("a reference is stronger than a majority, and one of another kind, LibTorch or job is not used") {
  const ArithmeticReference reference{"GPU X", "2.11", kJob, right_digests()};
  const std::vector<Measured> all{device(0, wrong_from(3)), device(1, wrong_from(3))};
  CHECK(judged(all, {reference}).at_fault.size() == 2);
  auto other = reference;
  other.torch = "2.12";
  CHECK(judged(all, {other}).outcome == Outcome::Pass);
  other = reference;
  other.job.steps = 3;
  CHECK(judged(all, {other}).outcome == Outcome::Pass);
}

TEST_CASE("a device that does not repeat itself is named alone and has no vote") {
  auto unsteady = device(0, wrong_from(5));
  unsteady.values["again"] = place_of({"fp32", 1, Phase::Gradient, "norm"});
  const auto check = judged({unsteady, device(1, right_digests())});
  CHECK(english(check.at_fault) == std::vector<std::string>{"rank 0 on host0 (cuda:0)"});
  CHECK(check.reason.en.find("does not compute the same twice; the first difference is fp32, step 2, backward: the "
                             "gradients of the weights of norm") != std::string::npos);
}

TEST_CASE("a reference is read as it was written; one with another number of digests is refused by name") {
  const auto folder = std::filesystem::temp_directory_path() / ("sealift-reference-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto text = write_arithmetic_reference(device(0, right_digests()).values);
  std::ofstream(folder / "x.json") << text;
  const auto read = read_arithmetic_references(folder);
  REQUIRE(read.size() == 1);
  CHECK(read[0].digests == right_digests());
  CHECK(read[0].job == kJob);
  auto json = Json::parse(text);
  json["digests"].erase(0);
  for (const auto& bad : {json.dump(), std::string("{"), std::string("[]"), std::string("{\"format\":1}"),
                          std::string("{\"format\":1,\"kind\":\"k\",\"torch\":\"t\",\"job\":{\"layers\":-1}}")}) {
    std::ofstream(folder / "x.json") << bad;
    CHECK_THROWS_WITH_AS(read_arithmetic_references(folder), doctest::Contains("x.json cannot be used"),
                         std::invalid_argument);
  }
  std::filesystem::remove_all(folder);
  CHECK(read_arithmetic_references(folder).empty());
}

TEST_CASE("heat: a device whose result changes is named with the round and the operation") {
  const auto at = [](std::int64_t rank, const Json& fault) {
    auto measured = device(rank, {});
    measured.values = {
        {"kind", "GPU X"}, {"job", to_json(kJob)}, {"rounds", 40 + rank}, {"seconds", 9.5}, {"fault", fault}};
    return measured;
  };
  Check good, bad;
  judge_heat({at(0, {}), at(1, {})}, good);
  CHECK(good.outcome == Outcome::Pass);
  CHECK(good.figures[0].value == 40);
  judge_heat({at(0, {}), at(1, {{"round", 12}, {"place", 0}})}, bad);
  CHECK(english(bad.at_fault) == std::vector<std::string>{"rank 1 on host1 (cuda:0)"});
  CHECK(bad.reason.en.find("in round 12 under load; the first difference is fp32, step 1, memory") !=
        std::string::npos);
}

Measured with_rate(std::int64_t rank, double value, bool cpu = false) {
  auto measured = device(rank, {});
  measured.values = {
      {"kind", "GPU X"}, {"cpu", cpu}, {"rates", {{{"name", "matmul bf16"}, {"unit", "TFLOP/s"}, {"value", value}}}}};
  return measured;
}

Check rated(const std::vector<double>& values, const Json& expected = Json::object(), bool cpu = false) {
  std::vector<Measured> all;
  for (const double value : values) all.push_back(with_rate(static_cast<std::int64_t>(all.size()), value, cpu));
  Check check;
  judge_rates(all, expected, check);
  return check;
}

TEST_CASE("rates: the slow one of its siblings is named; a few percent are not, and CPU ranks may differ by half") {
  CHECK(english(rated({600, 610, 590, 605, 400, 612}).at_fault) ==
        std::vector<std::string>{"rank 4 on host4 (cuda:0)"});
  CHECK(english(rated({600, 300}).at_fault) == std::vector<std::string>{"rank 1 on host1 (cuda:0)"});
  CHECK(rated({600, 610, 590, 560}).outcome == Outcome::Pass);
  CHECK(rated({600, 300, 500, 250}, Json::object(), true).outcome == Outcome::Pass);
  CHECK(rated({600, 610, 590, 20}, Json::object(), true).at_fault.size() == 1);
  CHECK(rated({600}).outcome == Outcome::Pass);
}

TEST_CASE("rates: CPU ranks of one host take turns on its cores and are not compared") {
  std::vector<Measured> all{with_rate(0, 600, true), with_rate(1, 5, true)};
  Check check;
  judge_rates(all, Json::object(), check);
  CHECK(check.at_fault.size() == 1);
  all[1].host = all[0].host;
  Check shared;
  judge_rates(all, Json::object(), shared);
  CHECK(shared.outcome == Outcome::Pass);
}

TEST_CASE("rates: what the site expects is held to each device") {
  const Json expected{{"arithmetic", {{"at_least", {{"matmul bf16", 550}}}}}};
  CHECK(rated({600, 610}, expected).outcome == Outcome::Pass);
  const auto check = rated({500, 510}, expected);
  CHECK(check.at_fault.size() == 2);
  CHECK(check.reason.en.find("reaches 500 TFLOP/s in matmul bf16; the site expects 550 TFLOP/s") != std::string::npos);
  CHECK(check.figures[0].at_least == 550);
  const Json other{{"arithmetic", {{"at_least", {{"host to device", 40}}}}}};
  CHECK(english(rated({500, 510}, other).at_fault) ==
        std::vector<std::string>{"site.toml"});  // which this device has not
  const Json misspelt{{"arithmetic", {{"at_least", {{"matmul bf61", 550}, {"memory", "fast"}}}}}};
  CHECK(english(rated({500, 510}, misspelt).at_fault) == std::vector<std::string>{"site.toml"});
}

TEST_CASE("slow ones: of a pair the lower, not-a-number always, nobody among equals") {
  CHECK(slow_ones({1, 2}, 0.1) == std::vector<std::size_t>{0});
  CHECK(slow_ones({5, 5, 5}, 0.1).empty());
  CHECK(slow_ones({5, std::numeric_limits<double>::quiet_NaN()}, 0.1) == std::vector<std::size_t>{1});
  CHECK(slow_ones({}, 0.1).empty());
  CHECK(slow_ones({100, 80, 60, 120, 90}, 0.1).empty());  // they differ widely, so nobody stands out
}

TEST_CASE("unlike most: more than half must be alike, else nobody is named") {
  using Texts = std::vector<std::string>;
  CHECK(unlike_most(Texts{"a", "b", "a"}) == std::vector<std::size_t>{1});
  CHECK(unlike_most(Texts{"a", "b"}).empty());
  CHECK(unlike_most(Texts{"a", "a", "b", "b"}).empty());
  CHECK(unlike_most(Texts{"a"}).empty());
  CHECK(unlike_most(Texts{}).empty());
  CHECK(what_most_are(std::vector<int>{3, 3, 4}) == 3);
}

}  // namespace
