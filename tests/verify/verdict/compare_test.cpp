// SPDX-License-Identifier: Apache-2.0
// Two reports are compared check by check: what became worse is said, and what only differs is not called worse.
#include "verify/verdict/compare.hpp"

#include "tests/verify/verdict/made_verdict.hpp"
#include "verify/pages/comparison_pages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace sealift::verify;

namespace {

/// made::verdict() as A, with one check changed as B.
Comparison after(const std::function<void(Verdict&)>& change, double threshold = 0.05) {
  auto now = made::verdict();
  change(now);
  return compare(made::verdict(), now, threshold);
}

/// What becomes of a figure with these expectations.
Comparison moved(double before, double after_value, std::optional<double> at_least, std::optional<double> at_most) {
  Verdict a, b;
  a.checks = {made::installation()};
  a.checks[0].figures = {{"rate", before, "GB/s", at_least, at_most, ""}};
  b = a;
  b.checks[0].figures[0].value = after_value;
  return compare(a, b, 0.05);
}

}  // namespace

TEST_CASE("equal reports have nothing to say") {
  const auto same = after([](Verdict&) {});
  CHECK(same.outcomes.empty());
  CHECK(same.figures.empty());
  CHECK(same.curves.empty());
  CHECK(same.facts.empty());
  CHECK(same.worse() == 0);
}

TEST_CASE("an outcome is worse when a pass is lost or a fail appears, and a check that is gone is a pass lost") {
  const auto turn = [](std::optional<Outcome> before, std::optional<Outcome> now) {
    Verdict a, b;
    a.checks = {made::golden()};
    b = a;
    if (before) a.checks.push_back(made::check("x.y", Part::Machine, {}, *before, {}, 0));
    if (now) b.checks.push_back(made::check("x.y", Part::Machine, {}, *now, {}, 0));
    return compare(a, b, 0.05).outcomes.at(0).turn;
  };
  using enum Outcome;
  CHECK(turn(Pass, Fail) == Turn::Worse);
  CHECK(turn(Pass, NotRun) == Turn::Worse);
  CHECK(turn(NotRun, Fail) == Turn::Worse);
  CHECK(turn(Pass, std::nullopt) == Turn::Worse);
  CHECK(turn(std::nullopt, Fail) == Turn::Worse);
  CHECK(turn(Fail, Pass) == Turn::Better);
  CHECK(turn(Fail, std::nullopt) == Turn::Better);
  CHECK(turn(std::nullopt, Pass) == Turn::Better);
  CHECK(turn(std::nullopt, NotRun) == Turn::Changed);
}

TEST_CASE("a figure within the noise has not moved, and beyond it the expectation says which way is worse") {
  CHECK(moved(100, 96, 90.0, {}).figures.empty());
  CHECK(moved(100, 94, 90.0, {}).figures.at(0).turn == Turn::Worse);
  CHECK(moved(100, 94, {}, 200.0).figures.at(0).turn == Turn::Better);
  CHECK(moved(100, 110, {}, 200.0).figures.at(0).turn == Turn::Worse);
  CHECK(moved(100, 110, {}, {}).figures.at(0).turn == Turn::Changed);
  CHECK(moved(100, 110, 50.0, 200.0).figures.at(0).turn == Turn::Changed);
  CHECK(moved(100, 110, 50.0, 105.0).figures.at(0).turn == Turn::Worse);
  CHECK(moved(110, 100, 50.0, 105.0).figures.at(0).turn == Turn::Better);
  CHECK(moved(0, 0, 1.0, {}).figures.empty());
  CHECK(moved(0, 1e-9, {}, 0.0).figures.at(0).turn == Turn::Worse);
  CHECK(moved(100, 110, {}, 200.0).figures.at(0).relative == doctest::Approx(10.0 / 110));
}

TEST_CASE("a figure that is no number any more is worse, whatever was expected of it") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  CHECK(moved(1, nan, {}, {}).figures.at(0).turn == Turn::Worse);
  CHECK(moved(nan, 1, {}, {}).figures.at(0).turn == Turn::Better);
  CHECK(moved(nan, nan, 1.0, {}).figures.empty());
  CHECK(moved(inf, inf, 1.0, {}).figures.empty());
  CHECK(moved(1, inf, {}, 5.0).figures.at(0).turn == Turn::Worse);
  CHECK(moved(-1.7e308, 1.7e308, 0.0, {}).figures.at(0).turn == Turn::Better);
}

TEST_CASE("an expectation that was loosened is shown though the figure stayed") {
  const auto comparison = after([](Verdict& now) { now.checks[1].figures[0].at_least = 1.0; });
  REQUIRE(comparison.figures.size() == 1);
  CHECK(comparison.figures[0].expectation_changed);
  CHECK_FALSE(comparison.figures[0].moved);
  CHECK(comparison.worse() == 0);
}

TEST_CASE("figures and facts of one name are matched in their order") {
  const auto twice = [](Verdict& verdict) {
    verdict.checks[0].figures = {{"rate", 1, "", {}, {}, ""}, {"rate", 2, "", {}, {}, ""}};
    verdict.checks[0].facts = {{"gpu", "a"}, {"gpu", "b"}};
  };
  auto a = made::verdict(), b = made::verdict();
  twice(a);
  twice(b);
  b.checks[0].figures[1].value = 3;
  b.checks[0].facts = {{"gpu", "a"}, {"gpu", "c"}, {"gpu", "d"}};
  const auto comparison = compare(a, b, 0.05);
  REQUIRE(comparison.figures.size() == 1);
  CHECK(comparison.figures[0].before->value == 2);
  REQUIRE(comparison.facts.size() == 2);
  CHECK(comparison.facts[0].before == "b");
  CHECK(comparison.facts[0].after == "c");
  CHECK_FALSE(comparison.facts[1].before);
}

TEST_CASE("a figure, a curve and a graph that only one report has are listed, and are not worse") {
  auto a = made::verdict(), b = a;
  a.checks[0].figures = {{"old", 1, "GB/s", 0.5, {}, ""}, {"same", 2, "", {}, {}, ""}, {"rate", 3, "GB/s", {}, {}, ""}};
  b.checks[0].figures = {{"new", 4, "s", {}, {}, ""}, {"same", 2, "", {}, {}, ""}, {"rate", 3000, "MB/s", {}, {}, ""}};
  Graph gone{.title = "gone", .x = "step", .y = "loss"};
  gone.curves = {{"a", {{1, 5}, {2, 4}}, false}, {"b", {{1, 5}}, true}};
  a.checks[0].graphs = {gone};
  b.checks[0].graphs = {};
  b.checks[2].graphs[0].curves.push_back({"more", {{8, 1}}, false});
  const auto comparison = compare(a, b, 0.05);
  CHECK(comparison.worse() == 0);
  std::vector<std::string> figures;
  for (const auto& change : comparison.figures) {
    CHECK(change.in_one_only());
    CHECK_FALSE(change.moved);
    figures.push_back((change.before ? "A " : "B ") + change.name().en);
  }
  CHECK(figures == std::vector<std::string>{"A old", "A rate", "B new", "B rate"});
  REQUIRE(comparison.curves.size() == 2);
  CHECK(comparison.curves[0].graph == "gone");
  CHECK(comparison.curves[0].before_points == 2);
  CHECK(comparison.curves[0].after_points == 0);
  CHECK(comparison.curves[0].first == 1);
  CHECK(comparison.curves[1].curve == "more");
  CHECK(comparison.curves[1].before_points == 0);
  const auto text = comparison_text(comparison, {a, b, "a", "b"}, Language::English);
  CHECK(text.find(": old | 1 GB/s | only in A | –") != text.npos);
  CHECK(text.find(": new | only in B | 4 s | –") != text.npos);
  const auto json = comparison_json(comparison);
  CHECK(json["figures"][0]["after"].is_null());
  CHECK(json["figures"][0]["relative"].is_null());
  CHECK(json["figures"][2]["before"].is_null());
}

TEST_CASE("driver, bundle, site and devices that changed are named, and other hosts of another site are not") {
  const auto comparison = after([](Verdict& now) {
    now.site = "other";
    now.bundle->version = "8";
    now.checks[1].facts[0].value = "580.1";
    now.nodes[0].devices[0] = "device cuda:0: NVIDIA H200";
    for (std::size_t i = 1; i < now.nodes.size(); ++i) now.nodes[i].host = "elsewhere" + std::to_string(i);
  });
  std::vector<std::string> names;
  for (const auto& fact : comparison.facts) names.push_back(fact.check + "/" + fact.name.en);
  CHECK(names == std::vector<std::string>{"/bundle", "/site", "/device of gpu01", "machine.matrix_rate/driver"});
}

TEST_CASE("reports that cannot be compared are refused") {
  Verdict other;
  other.checks = {made::check("a.b", Part::Machine, {}, Outcome::Pass, {}, 0)};
  CHECK_THROWS_AS(compare(made::verdict(), other, 0.05), std::invalid_argument);
  CHECK_THROWS_AS(compare(Verdict(), Verdict(), 0.05), std::invalid_argument);
  CHECK_THROWS_AS(compare(other, other, -1), std::invalid_argument);
  CHECK_THROWS_AS(compare(other, other, std::nan("")), std::invalid_argument);
  other.checks.push_back(other.checks[0]);
  CHECK_THROWS_WITH_AS(compare(made::verdict(), other, 0.05), "report B has the check a.b twice",
                       std::invalid_argument);
}

TEST_CASE("a curve over steps differs by its last bit, a measured one when it moved, and both name where") {
  const auto changed = after([](Verdict& now) {
    auto& loss = now.checks[4].graphs[0].curves;
    loss[0].points[3].second += 1;  // what is expected is not compared
    auto& point = loss[1].points[56].second;
    point = std::nextafter(point, 100.0);
    loss[1].points[99].second *= 1.5;
    auto& rates = now.checks[2].graphs[0].curves;
    for (auto& [x, y] : rates[0].points) y *= 1.01;
    rates[1].points[4].second *= 0.5;
    rates[2].points.pop_back();
  });
  CHECK(changed.worse() == 0);
  REQUIRE(changed.curves.size() == 3);
  const auto& gather = changed.curves[0];  // in the order of the checks, then of the names
  CHECK(gather.curve == "all-gather");
  CHECK(gather.first == 8192.0 * 256);
  CHECK(gather.largest == doctest::Approx(0.5));
  CHECK(changed.curves[1].curve.en == "reduce-scatter");
  CHECK(changed.curves[1].before_points == changed.curves[1].after_points + 1);
  CHECK_FALSE(changed.curves[1].after);
  const auto& loss = changed.curves[2];
  CHECK(loss.check == "training.golden");
  CHECK(loss.first == 57);
  CHECK(*loss.after > *loss.before);
  CHECK(loss.largest == doctest::Approx(1 / 3.0));
  const auto before = made::verdict();
  const auto text = comparison_text(changed, {before, before, "a", "b"}, Language::Chinese);
  CHECK(text.find("training.golden: 基准运行的损失, 此处，64 个进程的 fsdp | 步 57 |") != text.npos);
  CHECK(comparison_json(changed)["curves"][2]["first"] == 57);
}

TEST_CASE(
    "across levels a check that only the higher one runs, and a figure of another size, are not worse; a fail is") {
  const auto turn = [](Outcome before, Outcome now) {
    Verdict a, b;
    a.checks = {made::installation(), made::check("x.y", Part::Machine, {}, before, {}, 0)};
    b.checks = {made::installation(), made::check("x.y", Part::Machine, {}, now, {}, 0)};
    a.checks[0].figures = {{"rate", 9, "GB/s", 1, {}, ""}};
    b.checks[0].figures = {{"rate", 3, "GB/s", 1, {}, ""}};
    a.level = Level::Full, b.level = Level::Quick;
    const auto comparison = compare(a, b, 0.05);
    CHECK(comparison.figures.at(0).turn == Turn::Changed);
    return comparison.outcomes.at(0).turn;
  };
  CHECK(turn(Outcome::Pass, Outcome::NotRun) == Turn::Changed);
  CHECK(turn(Outcome::NotRun, Outcome::Pass) == Turn::Changed);
  CHECK(turn(Outcome::Pass, Outcome::Fail) == Turn::Worse);
  CHECK(turn(Outcome::NotRun, Outcome::Fail) == Turn::Worse);
  CHECK(turn(Outcome::Fail, Outcome::NotRun) == Turn::Changed);
  CHECK(turn(Outcome::Fail, Outcome::Pass) == Turn::Better);
}
