// SPDX-License-Identifier: Apache-2.0
// Judging of bandwidths, fed with made times: which group is slow, who is late, and nobody where a machine is busy.
#include "tests/verify/verdict/english.hpp"
#include "verify/communication/judge.hpp"
#include "verify/communication/rounds.hpp"
#include "verify/conduct/processors.hpp"

#include "tests/verify/communication/made_ranks.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>

namespace {

using namespace sealift::verify;
using namespace sealift::verify::made;
using Json = nlohmann::json;
using Names = std::vector<std::string>;

Json bandwidth(double seconds, double wait, std::vector<std::int64_t> shard, double shard_seconds, bool cpu = false) {
  return {{"cpu", cpu},
          {"facts", Json::array()},
          {"waits", {wait, wait}},
          {"barrier", 1e-4},
          {"curves",
           {{{"group", "world"},
             {"members", {0, 1, 2, 3}},
             {"op", "all_reduce"},
             {"points", {{1e6, {9 * seconds, seconds}}, {4e6, {4 * seconds, 5 * seconds}}}}},
            {{"group", "shard"},
             {"members", shard},
             {"op", "all_gather"},
             {"points", {{1e6, {shard_seconds, 7 * shard_seconds}}}}}}}};
}

/// Four ranks; `waits` and times along the two groups of `shard`.
Check fast(const std::vector<double>& waits, double first_shard, double second_shard,
           const Json& expected = Json::object()) {
  std::vector<Measured> all;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const bool first = rank < 2;
    all.push_back(rank_with(rank, bandwidth(1e-3, waits[static_cast<std::size_t>(rank)],
                                            first ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{2, 3},
                                            first ? first_shard : second_shard)));
  }
  Check check;
  judge_bandwidth(all, expected, check);
  return check;
}

const std::vector<double> kEven{1e-4, 1.1e-4, 1e-4, 9e-5};

TEST_CASE("bandwidth: curves are nccl-tests' bus bandwidth, held to what the site expects") {
  const auto check = fast(kEven, 1e-3, 1e-3);
  CHECK(check.outcome == Outcome::Pass);
  REQUIRE(check.graphs.size() == 2);
  const auto& world = check.graphs[1].curves[0];
  CHECK(world.points[0].second == doctest::Approx(1.5));  // 1e6 B in 1e-3 s, times 2 (4 - 1) / 4
  const Json expected{{"communication", {{"at_least_gb", {{"all_reduce", 2}}}}}};
  CHECK(
      fast(kEven, 1e-3, 1e-3, expected).reason.en.find("all_reduce over world: reaches 1.5 GB/s; the site expects 2") ==
      0);
}

TEST_CASE("bandwidth: the slow group of an axis is named by its ranks, a late rank by its short waits") {
  CHECK(english(fast(kEven, 1e-3, 4e-3).at_fault) == Names{"ranks 2, 3"});
  CHECK(english(fast({0.05, 0.05, 1e-4, 0.05}, 1e-3, 1e-3).at_fault) == Names{named(2)});
  CHECK(fast({1e-4, 3e-4, 2e-4, 4e-4}, 1e-3, 1.2e-3).outcome == Outcome::Pass);
}

TEST_CASE("bandwidth: who is slow in some rounds only is not named, nor who comes late in some") {
  const auto check_of = [](const std::vector<double>& of_second_group, const std::vector<double>& waits_of_three) {
    std::vector<Measured> all;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      auto values =
          bandwidth(1e-3, 0.05, rank < 2 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{2, 3}, 1e-3);
      values["waits"] = std::vector<double>(5, 0.05);
      if (rank >= 2) values["curves"][1]["points"] = {{1e6, of_second_group}};
      if (rank == 3) values["waits"] = waits_of_three;
      all.push_back(rank_with(rank, values));
    }
    Check check;
    judge_bandwidth(all, Json::object(), check);
    return english(check.at_fault);
  };
  const std::vector<double> never(5, 0.05);
  CHECK(check_of({4e-3, 1e-3, 4e-3, 4e-3, 4e-3}, never).empty());
  CHECK(check_of({4e-3, 5e-3, 4e-3, 6e-3, 4e-3}, never) == Names{"ranks 2, 3"});
  CHECK(check_of({1e-3}, {0, 0, 0, 0.05, 0.05}).empty());
  CHECK(check_of({1e-3}, {0, 0, 0, 0.05, 0}) == Names{named(3)});
}

/// Eight hosts of one rank, in four groups of two; measured in rounds as `measure_bandwidth` does, with delays that are
/// drawn: now and then other work has a rank's processor for tens of milliseconds. Rank 7 may come late on top of it,
/// and the group of ranks 2 and 3 be slow.
class MadeTimes {
 public:
  MadeTimes(unsigned seed, double how_often, double slow_times = 1, double late = 0)
      : random_(seed), how_often_(how_often), slow_times_(slow_times), late_(late) {}

  std::vector<Measured> measured(const Json& processors = nullptr) {
    SecondsOfRanks seconds(8), waits(8);
    const auto best = [&] {
      std::vector<double> groups;
      for (std::size_t first = 0; first < 8; first += 2)
        groups.push_back(best_round({seconds[first], seconds[first + 1]}));
      return groups;
    };
    for (std::size_t round = 0; round < kMostRounds; ++round) {
      if (round < kRounds || one_seems_slow(best())) transfer(seconds);
      if (round < kRounds || !late_in_most(waits, 0.002).empty()) meet(waits);
    }
    std::vector<Measured> all;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const auto first = static_cast<std::int64_t>(rank / 2 * 2);
      all.push_back(rank_with(static_cast<std::int64_t>(rank), {{"cpu", true},
                                                                {"facts", Json::array()},
                                                                {"waits", waits[rank]},
                                                                {"barrier", 1e-4},
                                                                {"processors", processors},
                                                                {"curves",
                                                                 {{{"group", "shard"},
                                                                   {"members", {first, first + 1}},
                                                                   {"op", "all_gather"},
                                                                   {"points", {{4e6, seconds[rank]}}}}}}}));
    }
    return all;
  }

 private:
  double delay() {
    return std::bernoulli_distribution(how_often_)(random_) ? std::exponential_distribution(1 / 0.04)(random_) : 0;
  }
  void transfer(SecondsOfRanks& seconds) {
    for (std::size_t first = 0; first < 8; first += 2) {
      const double took = 0.01 * (first == 2 ? slow_times_ : 1) * std::uniform_real_distribution(1.0, 1.3)(random_);
      const double group = took + std::max(delay(), delay());
      seconds[first].push_back(group), seconds[first + 1].push_back(group);
    }
  }
  void meet(SecondsOfRanks& waits) {
    std::vector<double> enters;
    for (int rank = 0; rank < 8; ++rank) enters.push_back(delay() + (rank == 7 ? late_ : 0));
    const double last = *std::max_element(enters.begin(), enters.end());
    for (std::size_t rank = 0; rank < 8; ++rank) waits[rank].push_back(1e-4 + last - enters[rank]);
  }

  std::mt19937 random_;
  double how_often_, slow_times_, late_;
};

TEST_CASE(
    "bandwidth: of 2,000 drawn runs with other work now and then, none names anybody; what is slow is named in all") {
  const auto at_fault = [](MadeTimes times) {
    Check check;
    judge_bandwidth(times.measured(), Json::object(), check);
    return english(check.at_fault);
  };
  int named_wrongly = 0, slow_missed = 0, late_missed = 0;
  for (unsigned draw = 0; draw < 2000; ++draw) {
    named_wrongly += at_fault(MadeTimes(draw, 0.2)).empty() ? 0 : 1;
    slow_missed += at_fault(MadeTimes(draw, 0.2, 5)) == Names{"ranks 2, 3"} ? 0 : 1;
    late_missed += at_fault(MadeTimes(draw, 0.05, 1, 0.25)) == Names{named(7)} ? 0 : 1;
  }
  CHECK(named_wrongly == 0);
  CHECK(slow_missed == 0);
  CHECK(late_missed == 0);
}

Json processors(double others, double cores = 2, double wanted = 2) {
  return {{"machine", "m"},          {"cores", cores}, {"seconds", 10},
          {"busy", 10 * others + 8}, {"own", 1},       {"wanted", wanted}};
}

TEST_CASE("bandwidth: what is slow on a busy machine names nobody and is NOT RUN, with what others took") {
  int failed = 0, named_somebody = 0, not_run = 0;
  for (unsigned draw = 0; draw < 500; ++draw) {
    Check check;
    judge_bandwidth(MadeTimes(draw, 0.9).measured(processors(1.6)), Json::object(), check);
    failed += check.outcome == Outcome::Fail ? 1 : 0;
    not_run += check.outcome == Outcome::NotRun ? 1 : 0;
    named_somebody += check.at_fault.empty() ? 0 : 1;
  }
  CHECK(failed == 0);
  CHECK(named_somebody == 0);
  CHECK(not_run > 0);
  Check check;
  judge_bandwidth(MadeTimes(1, 0, 9).measured(processors(1.6)), Json::object(), check);
  CHECK(check.reason.en.find("the machine was busy: other programs took 1.6 of 2 processors of host0, so nobody is "
                             "named for what looked slow (ranks 2, 3: reach ") == 0);
  CHECK(check.reason.zh.find("机器繁忙：其他程序占用了 host0 的 2 个处理器中的 1.6 个") == 0);
  CHECK(check.figures.back().value == doctest::Approx(1.6));
}

TEST_CASE("bandwidth: other work is no excuse where it left the ranks what they want, or for a misspelt site.toml") {
  const auto outcome = [](const Json& load, const Json& expected = Json::object()) {
    Check check;
    judge_bandwidth(MadeTimes(1, 0, 9).measured(load), expected, check);
    return english(check.at_fault);
  };
  CHECK(outcome(processors(0.15)) == Names{"ranks 2, 3"});        // less than a tenth
  CHECK(outcome(processors(20, 128, 2)) == Names{"ranks 2, 3"});  // 108 are left for 8 ranks
  CHECK(outcome(processors(20, 24, 2)).empty());
  CHECK(outcome(nullptr) == Names{"ranks 2, 3"});  // nothing is known
  CHECK(outcome(processors(1.6), {{"communication", {{"at_least_gb", {{"all_reduec", 1}}}}}}) == Names{"site.toml"});
}

TEST_CASE("bandwidth: a rank that a quota held back is named with the quota, and nobody's link or silicon is") {
  const auto held = [](double seconds) {
    auto processors_of_rank = processors(0.1);  // measured for 10 s
    processors_of_rank["held_back"] = {
        {"seconds", seconds}, {"periods", 40}, {"quota", 0.5}, {"file", "/sys/fs/cgroup/pod/cpu.max"}};
    return processors_of_rank;
  };
  const auto judged = [&](double slow_by, double seconds) {
    auto all = MadeTimes(1, 0, slow_by).measured(processors(0.1));
    all[3].values["processors"] = held(seconds);
    Check check;
    judge_bandwidth(all, Json::object(), check);
    return check;
  };
  const auto check = judged(9, 3);
  CHECK(check.outcome == Outcome::Fail);
  CHECK(english(check.at_fault) == Names{named(3)});
  CHECK_MESSAGE(check.reason.en.find("its control group has a quota of 0.5 processors (/sys/fs/cgroup/pod/cpu.max), "
                                     "which held it back in 40 periods, 3 s in all") != std::string::npos,
                check.reason.en);
  CHECK(check.reason.en.find("ranks 2, 3: reach") == std::string::npos);
  CHECK(check.reason.zh.find("处理器配额为 0.5") != std::string::npos);
  CHECK(english(judged(9, 0.4).at_fault) == Names{"ranks 2, 3"});  // less than a twentieth of the time
  CHECK(judged(1, 3).outcome == Outcome::Pass);                    // nobody looks slow
}

TEST_CASE("processors: what another process takes is counted, and what this one takes is its own") {
  const Processors processors;
  const auto child = fork();
  REQUIRE(child >= 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
  while (std::chrono::steady_clock::now() < until && child == 0) {
  }
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto theirs = processors.taken(1);
  REQUIRE(theirs.is_object());
  CHECK(theirs.at("busy").get<double>() - theirs.at("own").get<double>() > 0.1);
  CHECK(theirs.at("own").get<double>() < 0.3);
  const Processors again;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  while (std::chrono::steady_clock::now() < end) {
  }
  CHECK(again.taken(1).at("own").get<double>() > 0.05);
}

TEST_CASE("bandwidth: what is slower by a moment only is the host's scheduler and is not named, whatever the ratio") {
  CHECK(fast(kEven, 1e-5, 2e-4).outcome == Outcome::Pass);
}

}  // namespace
