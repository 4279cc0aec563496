// SPDX-License-Identifier: Apache-2.0
// Collectives on ranks that are threads: right and quiet without a fault, and each injected fault named.
#include "verify/communication/measure.hpp"
#include "tests/verify/verdict/english.hpp"
#include "verify/communication/judge.hpp"
#include "verify/conduct/check_kind.hpp"

#include "tests/support/ranks.hpp"

#include <doctest/doctest.h>

#include <mutex>

namespace {

using namespace sealift;
using namespace sealift::verify;
using Names = std::vector<std::string>;
using Measure = std::function<nlohmann::json(const Lines&, const CommunicationFaults&)>;

/// Faults of rank 2; the others have none.
std::vector<Measured> measured_on(std::int64_t ranks, const Measure& measure, const CommunicationFaults& of_two = {},
                                  std::int64_t rounds = 1) {
  std::vector<Measured> all(static_cast<std::size_t>(ranks));
  sealift::test::on_ranks(ranks, [&](const train::World& world) {
    const auto groups = train::make_groups(world, train::Mesh(1, ranks));
    const auto lines = make_lines(groups, ranks);
    for (std::int64_t round = 0; round < rounds; ++round) {
      auto values = measure(lines, world.rank == 2 ? of_two : CommunicationFaults{});
      if (values.contains("processors"))
        values["processors"] = nullptr;  // what else this machine does is no matter here
      all[static_cast<std::size_t>(world.rank)] = {world.rank, "here", "cpu", {}, {}, std::move(values)};
    }
  });
  return all;
}

const Measure kRight = [](const Lines& lines, const auto& faults) {
  return measure_right(lines, {1, 3, 1023}, faults);
};

Check judged_right(const std::vector<Measured>& all) {
  Check check;
  judge_right(all, check);
  return check;
}

TEST_CASE("every collective is right for all dtypes and odd sizes, in worlds of 2, 3 and 4 with the axes of a mesh") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    const auto all = measured_on(ranks, [](const Lines& lines, const auto& faults) {
      return measure_right(lines,
                           lines.groups.world.size() == 3 ? std::vector<std::int64_t>{1, 1023, 65537}
                                                          : std::vector<std::int64_t>{1, 3, 1023},
                           faults);
    });
    const auto check = judged_right(all);
    CHECK(check.outcome == Outcome::Pass);
    CHECK(all[0].values.at("cases") == (ranks == 4 ? 3 : 1) * (4 * 3 * 5 + 1));
  }
}

/// Changes the element `index` of what a collective handles.
void damage(const at::Tensor& data, std::int64_t index) {
  auto element = data.flatten()[index % data.numel()];
  element.fill_(element.item<double>() == 0 ? 1 : 0);
}

TEST_CASE("a rank that receives or computes one element wrong is named, whatever the collective") {
  for (const auto* op : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"}) {
    CAPTURE(op);
    CommunicationFaults faults;
    faults.after = [op](const std::string& name, const at::Tensor& received) {
      if (name == op) damage(received, 700);
    };
    const auto check = judged_right(measured_on(3, kRight, faults));
    CHECK(check.outcome == Outcome::Fail);
    CHECK(std::ranges::count(english(check.at_fault), "rank 2 on here (cpu)") == 1);
    CHECK(check.reason.en.find(op) != std::string::npos);
    CHECK(check.reason.en.find("other bits 0x") != std::string::npos);
  }
}

TEST_CASE("a rank that sends one element wrong to several is named alone, though sums are wrong everywhere") {
  CommunicationFaults faults;
  faults.before = [](const std::string& op, const at::Tensor& sent) {
    if (op == "all_gather" || op == "all_reduce") damage(sent, 500);
  };
  const auto check = judged_right(measured_on(3, kRight, faults));
  CHECK(english(check.at_fault) == Names{"rank 2 on here (cpu)"});
  CHECK(check.reason.en.find("rank 2 on here (cpu): sends wrong data to several ranks") == 0);
}

TEST_CASE("parts in each other's places are seen") {
  CommunicationFaults faults;
  faults.after = [](const std::string& op, const at::Tensor& received) {
    if (op == "all_gather") received.copy_(received.roll(received.numel() / 3));
  };
  CHECK(english(judged_right(measured_on(3, kRight, faults)).at_fault) == Names{"rank 2 on here (cpu)"});
}

TEST_CASE("a rank that comes late to collectives is named; where ranks take turns on one host's cores, none is") {
  const Measure times = [](const Lines& lines, const auto& faults) { return measure_bandwidth(lines, {4096}, faults); };
  CommunicationFaults slow;
  slow.before = [](const std::string& op, const at::Tensor& sent) {
    if (op == "all_reduce" && sent.numel() == 256) std::this_thread::sleep_for(std::chrono::milliseconds(90));
  };
  auto all = measured_on(4, times, slow);
  Check one_host, hosts;
  judge_bandwidth(all, nlohmann::json::object(), one_host);
  CHECK(one_host.outcome == Outcome::Pass);
  CHECK(one_host.graphs.size() == 3);
  for (auto& measured : all) measured.host = "host" + std::to_string(measured.rank);
  judge_bandwidth(all, nlohmann::json::object(), hosts);
  CHECK(std::ranges::count(english(hosts.at_fault), "rank 2 on host2 (cpu)") == 1);
}

TEST_CASE("pairs exchange right data; a rank whose exchanges are damaged is named") {
  const Measure pairs = [](const Lines& lines, const auto& faults) {
    return measure_pairs(lines, "here", 1 << 16, faults);
  };
  for (const std::int64_t ranks : {2, 3, 4}) {
    Check check;
    judge_pairs(measured_on(ranks, pairs), nlohmann::json::object(), check);
    CHECK(check.outcome == Outcome::Pass);
    CHECK(check.matrices.at(0).rows.size() == static_cast<std::size_t>(ranks));
    CHECK(check.figures.at(0).value > 0);
  }
  for (const auto& measured : measured_on(3, pairs)) {  // ranks that are threads have one process's connections
    for (const auto& way : measured.values.at("packets")) {
      CHECK(way.at(0) == measured.rank);
      CHECK(way.at(2) > 0);
      CHECK(way.at(5) == 5);
    }
  }
  CommunicationFaults faults;
  faults.before = [](const std::string& op, const at::Tensor& sent) {
    if (op == "pair") damage(sent, 99);
  };
  Check check;
  judge_pairs(measured_on(4, pairs, faults), nlohmann::json::object(), check);
  CHECK(english(check.at_fault) == Names{"rank 2 on here (cpu)"});
}

TEST_CASE("pairs: who was slow once is measured again and not named; who is slow each time is") {
  const Measure pairs = [](const Lines& lines, const auto& faults) {
    return measure_pairs(lines, "here", 1 << 16, faults);
  };
  for (const int exchanges : {6, 1000}) {  // of rank 2: those of its first meeting, or all
    CAPTURE(exchanges);
    int calls = 0;
    CommunicationFaults faults;
    faults.before = [&](const std::string& op, const at::Tensor& sent) {
      if (op == "pair" && sent.numel() > 0 && ++calls <= exchanges)
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
    };
    auto all = measured_on(4, pairs, faults);
    for (auto& measured : all) measured.host = "host" + std::to_string(measured.rank);
    Check check;
    judge_pairs(all, nlohmann::json::object(), check);
    CHECK(english(check.at_fault) == (exchanges == 6 ? Names{} : Names{"rank 2"}));
  }
}

TEST_CASE("repeated for a time, a fault in a later repetition is kept") {
  std::atomic<int> calls = 0;
  CommunicationFaults faults;
  faults.after = [&](const std::string& op, const at::Tensor& received) {
    if (op == "broadcast" && ++calls == 9) damage(received, 0);
  };
  const Measure repeated = [](const Lines& lines, const auto& each) {
    return measure_right_for({.groups = lines.groups, .all = {lines.all.front()}}, {3},
                             std::chrono::duration<double>(each.after ? 60 : 1.5), each);
  };
  const auto check = judged_right(measured_on(3, repeated, faults));
  CHECK(check.at_fault.size() <= 2);
  CHECK(std::ranges::count(english(check.at_fault), "rank 2 on here (cpu)") == 1);
  CHECK(check.figures.at(0).value > 3 * 21);
}

TEST_CASE("a world of one has nobody to talk to, which is said and no pass") {
  CHECK_THROWS_AS(make_lines(train::make_groups({}, train::Mesh(1, 1)), 1), NotRun);
}

}  // namespace
