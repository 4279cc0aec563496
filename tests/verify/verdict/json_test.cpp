// SPDX-License-Identifier: Apache-2.0
// report.json is read as it was written, and a changed one is refused by the key at fault.
#include "verify/verdict/json.hpp"

#include "tests/support/refusal.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace sealift::verify;

namespace {

Verdict made_verdict() {
  Check check;
  check.name = "machine.clock";
  check.part = Part::Machine;
  check.title = {"clocks agree", "时钟一致"};
  check.outcome = Outcome::Fail;
  check.reason = {"node b is 40 s ahead", "节点 b 快 40 秒"};
  check.at_fault = {{"node b", "节点 b"}, "node c"};
  check.seconds = 0.25;
  check.figures = {{.name = {"skew", "时钟偏差"},
                    .value = 40,
                    .unit = "s",
                    .at_least = {},
                    .at_most = 1.0,
                    .basis = {"its siblings", "其他主机"}},
                   {.name = "rate",
                    .value = std::numeric_limits<double>::infinity(),
                    .unit = "GB/s",
                    .at_least = 0.1,
                    .at_most = {},
                    .basis = ""}};
  check.graphs = {{.title = "loss",
                   .x = "step",
                   .y = "nats",
                   .log_x = false,
                   .log_y = true,
                   .curves = {{.name = "golden", .points = {{1, 2.5}, {2, 1.0 / 3}}, .expected = true}}}};
  check.matrices = {{.title = "pairs", .unit = "GB/s", .rows = {"a"}, .columns = {"a", "b"}, .values = {{}, 9.5}}};
  check.facts = {{{"driver", "驱动"}, "535.183.06"}};
  return {.site = "bank",
          .level = Level::Full,
          .started = "2026-01-31T12:00:00Z",
          .finished = "2026-01-31T12:10:00Z",
          .program = "LibTorch 2.11.0",
          .bundle = BundleIdentity{"llm", "7", "ab", {"k1", "k2"}},
          .nodes = {{"a", {0, 1}, {"cpu", "cpu"}}},
          .checks = {check}};
}

nlohmann::json written() {
  return nlohmann::json::parse(to_json(made_verdict()).dump());
}

}  // namespace

TEST_CASE("a verdict is read as it was written, with infinite numbers and what was not measured") {
  CHECK(verdict_from(written()) == made_verdict());
}

TEST_CASE("a report of before names had Chinese is read, and its names are the same in both languages") {
  auto json = written();
  auto& check = json["checks"][0];
  CHECK(check["at_fault"] == nlohmann::json{"node b", "node c"});
  CHECK(check["at_fault_zh"] == nlohmann::json{"节点 b", "node c"});
  CHECK(check["facts"][0]["name"] == "driver");
  CHECK(check["facts"][0]["name_zh"] == "驱动");
  CHECK_FALSE(check["facts"][0].contains("value_zh"));  // the same in both
  check.erase("at_fault_zh");
  check["facts"][0].erase("name_zh");
  for (auto& figure : check["figures"]) figure.erase("name_zh"), figure.erase("basis_zh");
  const auto read = verdict_from(json);
  CHECK(read.checks[0].at_fault == std::vector<Phrase>{"node b", "node c"});
  CHECK(read.checks[0].facts == std::vector<Fact>{{"driver", "535.183.06"}});
  CHECK(read.checks[0].figures[0].name == Phrase("skew"));
  check["at_fault_zh"] = {"节点 b"};
  CHECK_REFUSED(verdict_from(json), Format, "the report.checks[0].at_fault_zh");
}

TEST_CASE("a report whose verdict does not follow from its checks is refused") {
  auto json = written();
  json["verdict"] = "PASS";
  CHECK_REFUSED(verdict_from(json), Format, "its checks come to FAIL");
}

TEST_CASE("a report is refused by the key that is missing, unknown or of another kind") {
  auto json = written();
  json["checks"][0].erase("seconds");
  CHECK_REFUSED(verdict_from(json), Format, "the key 'seconds' is missing");
  json = written();
  json["checks"][0]["waived"] = true;
  CHECK_REFUSED(verdict_from(json), Format, "the key 'waived' is not known");
  json = written();
  json["checks"][0]["outcome"] = "OK";
  CHECK_REFUSED(verdict_from(json), Format, "one of PASS, FAIL, NOT RUN was expected");
  json = written();
  json["checks"][0]["matrices"][0]["values"].push_back(1);
  CHECK_REFUSED(verdict_from(json), Format, "for each of 1 rows and 2 columns");
  json = written();
  json["format"] = 2;
  CHECK_REFUSED(verdict_from(json), Format, "this program reads format 1");
}

TEST_CASE("a failed check fails the site, and a site where nothing was run has not passed") {
  auto verdict = made_verdict();
  CHECK(outcome_of(verdict) == Outcome::Fail);
  verdict.checks[0].outcome = Outcome::NotRun;
  CHECK(outcome_of(verdict) == Outcome::NotRun);
  verdict.checks.push_back(verdict.checks[0]);
  verdict.checks[1].outcome = Outcome::Pass;
  CHECK(outcome_of(verdict) == Outcome::Pass);
}
