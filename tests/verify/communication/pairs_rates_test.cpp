// SPDX-License-Identifier: Apache-2.0
// Judging of pairs by their rates, as they scatter beside other work: what is far slower is named, and no noise is.
#include "tests/verify/communication/made_ranks.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/communication/judge.hpp"
#include "verify/verdict/outliers.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

namespace {

using namespace sealift::verify;
using namespace sealift::verify::made;
using Json = nlohmann::json;
using Names = std::vector<std::string>;
using Rates = std::map<std::pair<std::int64_t, std::int64_t>, double>;

/// Hosts of one rank each that exchanged 32 MiB; `rates` in GB/s by pair; `others`: of 2 processors, what other
/// programs took.
Check judged(std::int64_t hosts, const Rates& rates, const Json& expected = Json::object(), double others = 0) {
  Names nodes;
  for (std::int64_t host = 0; host < hosts; ++host) nodes.push_back("host" + std::to_string(host));
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < hosts; ++rank) {
    Json pairs = Json::array();
    for (const auto& [pair, rate] : rates) {
      const double bytes = 32 << 20, seconds = bytes / rate / 1e9;
      if (pair.first == rank || pair.second == rank) {
        pairs.push_back({pair.first, pair.second, bytes, seconds, 2 * seconds});
      }
    }
    const Json processors = {{"machine", "m"},      {"cores", 2}, {"seconds", 10},
                             {"busy", 10 * others}, {"own", 0},   {"wanted", 2}};
    all.push_back(rank_with(rank, {{"cpu", true},
                                   {"hosts", hosts},
                                   {"nodes", nodes},
                                   {"facts", Json::array()},
                                   {"pairs", pairs},
                                   {"packets", Json::array()},
                                   {"faults", Json::array()},
                                   {"processors", processors}}));
  }
  Check check;
  judge_pairs(all, expected, check);
  return check;
}

/// Of four hosts; one link at 80 Mbit/s, the others as far apart as beside other work.
const Rates kSlowAmongNoise{{{0, 1}, 1.08}, {{0, 2}, 0.7},    {{0, 3}, 1.5},
                            {{1, 2}, 1.4},  {{1, 3}, 0.0096}, {{2, 3}, 0.8}};
const Json kSite{{"communication", {{"at_least_gb", {{"pair", 0.5}}}}}};

Rates drawn(unsigned seed, double least, double most) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> rate(least, most);
  Rates rates;
  for (std::int64_t one = 0; one < 4; ++one) {
    for (std::int64_t other = one + 1; other < 4; ++other) rates[{one, other}] = rate(random);
  }
  return rates;
}

TEST_CASE("pairs: a link at a hundredth of the others is named, however far these are apart") {
  const auto check = judged(4, kSlowAmongNoise);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == Names{"host1 - host3"});
  CHECK(check.reason.en == "host1 - host3: reach 0.0096 GB/s; other pairs 1.08 GB/s");
  int missed = 0;
  for (unsigned draw = 0; draw < 2000; ++draw) {
    auto rates = drawn(draw, 0.7, 1.6);
    rates[{1, 3}] = 0.0096;
    const auto names = english(judged(4, rates).at_fault);
    missed += std::find(names.begin(), names.end(), "host1 - host3") == names.end() ? 1 : 0;
  }
  CHECK(missed == 0);
}

TEST_CASE("pairs: a host with one slow link and one noisy one is not called slow with everyone") {
  auto rates = kSlowAmongNoise;
  rates[{0, 3}] = 0.45;
  rates[{2, 3}] = 1.1;  // of host3 the median is 0.45, of the others 1.08
  CHECK(english(judged(4, rates).at_fault) == Names{"host1 - host3"});
  for (const auto& pair : {std::pair{0, 3}, {1, 3}, {2, 3}}) rates[pair] = 0.0096;
  CHECK(english(judged(4, rates).at_fault) == Names{"host3"});
}

TEST_CASE("pairs: that link is NOT RUN on a busy machine, with what looked slow, and never PASS") {
  const auto check = judged(4, kSlowAmongNoise, Json::object(), 1.6);
  CHECK(check.outcome == Outcome::NotRun);
  CHECK(check.at_fault.empty());
  CHECK(check.reason.en.find("the machine was busy: other programs took 1.6 of 2 processors of host0, so nobody is "
                             "named for what looked slow (host1 - host3: reach 0.0096 GB/s") == 0);
}

TEST_CASE("pairs: noisy rates without a slow link name nobody") {
  CHECK(judged(4, {{{0, 1}, 0.5}, {{0, 2}, 0.7}, {{0, 3}, 1}, {{1, 2}, 1.1}, {{1, 3}, 1.3}, {{2, 3}, 1.7}}).outcome ==
        Outcome::Pass);
  int named_wrongly = 0;
  for (unsigned draw = 0; draw < 2000; ++draw) {
    named_wrongly += judged(4, drawn(draw, 0.8, 1.6)).outcome == Outcome::Pass ? 0 : 1;
  }
  CHECK(named_wrongly == 0);
}

TEST_CASE("pairs: where two of four hosts are slow nobody is named and nothing is good, until the site says its rate") {
  auto rates = drawn(1, 0.009, 0.01);
  rates[{2, 3}] = 1.08;
  const auto check = judged(4, rates);
  CHECK(check.outcome == Outcome::NotRun);
  CHECK(check.at_fault.empty());
  CHECK_MESSAGE(
      check.reason.en.find(" GB/s or less, and host2 - host3 reach 1.08 GB/s: most may be slow") != std::string::npos,
      check.reason.en);
  CHECK(check.reason.zh.find("而 host2 - host3 达到 1.08 GB/s") != std::string::npos);
  CHECK(judged(4, rates, Json::object(), 1.6).reason.en.find("the machine was busy: other programs took 1.6 of 2") ==
        0);
  CHECK(judged(4, rates, kSite).at_fault.size() == 5);
  CHECK(judged(4, rates, {{"communication", {{"at_least_gb", {{"pair", 0.001}}}}}}).outcome == Outcome::Pass);
  CHECK(judged(4, drawn(1, 0.009, 0.01)).outcome == Outcome::Pass);  // all alike: a slow network of equals
}

TEST_CASE("pairs: of two hosts only the site's rate judges the one pair") {
  CHECK(judged(2, {{{0, 1}, 0.0096}}).reason.en.find("the one pair of 2 nodes exchanged right data;") == 0);
  CHECK(english(judged(2, {{{0, 1}, 0.0096}}, kSite).at_fault) == Names{"host0 - host1"});
  CHECK(judged(2, {{{0, 1}, 0.0096}}, kSite, 1.6).outcome == Outcome::NotRun);
  CHECK(judged(2, {{{0, 1}, 1.08}}, kSite).outcome == Outcome::Pass);
}

TEST_CASE("slow ones: below a quarter of the typical however noisy, and below the floor where that allows less") {
  CHECK(slow_ones({100, 60, 140, 150, 24}, 0.1) == std::vector<std::size_t>{4});
  CHECK(slow_ones({100, 60, 140, 150, 26}, 0.1).empty());
  CHECK(slow_ones({100, 60, 140, 150, 21}, 0.8).empty());
  CHECK(slow_ones({100, 60, 140, 150, 19}, 0.8) == std::vector<std::size_t>{4});
}

}  // namespace
