// SPDX-License-Identifier: Apache-2.0
// A PASS says in its own line what it does not stand on: on the pages, in report.json and in the list that is signed.
#include "verify/wording/statement.hpp"

#include "tests/support/refusal.hpp"
#include "tests/verify/verdict/made_verdict.hpp"
#include "tests/verify/wording/parts_of.hpp"
#include "verify/pages/pages.hpp"
#include "verify/verdict/json.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;

namespace {

constexpr auto kEnglish = Language::English, kChinese = Language::Chinese;

Check not_fast(const std::string& name, Outcome outcome,
               Phrase reason = {"what is beside it takes the processors", "忙"}) {
  return made::check(name, Part::Communication, {"links are fast", "链路正常"}, outcome, std::move(reason), 0);
}

/// A pass, and of the checks that the run was to make the first `asked` of 8 without a result; 2 are of other runs.
Verdict pass_with(std::size_t asked) {
  Verdict verdict{
      .site = "bank", .started = "", .finished = "", .program = "", .bundle = {}, .nodes = {}, .checks = {}};
  verdict.checks.push_back(not_fast("communication.right", Outcome::Pass));
  for (const auto* name : {"bandwidth", "pairs", "c", "d", "e", "f", "g", "h"}) {
    if (asked-- == 0) break;
    verdict.checks.push_back(not_fast(std::string("communication.") + name, Outcome::NotRun));
  }
  verdict.checks.push_back(not_fast("communication.soak", Outcome::NotRun, part_of_level(Level::Burn)));
  verdict.checks.push_back(not_fast("training.ddp", Outcome::NotRun, left_out_by_only()));
  return verdict;
}

}  // namespace

TEST_CASE("a pass names the checks that its run could not make, and counts those that were not asked for") {
  CHECK(statement(pass_with(2), kEnglish) ==
        "PASS, with 2 checks not run: communication.bandwidth, communication.pairs; not part of this run (--level, "
        "--only): 2");
  CHECK(statement(pass_with(2), kChinese) ==
        "通过，另有 2 项检查未运行：communication.bandwidth、communication.pairs；不属于本次运行（--level、--only）：2 "
        "项");
  CHECK(has(statement(pass_with(1), kEnglish), "PASS, with 1 check not run: communication.bandwidth; "));
  CHECK(statement(pass_with(0), kEnglish) == "PASS, not part of this run (--level, --only): 2");
  CHECK(has(statement(pass_with(8), kEnglish), "with 8 checks not run: communication.bandwidth"));
  CHECK(has(statement(pass_with(8), kEnglish), "communication.f, and 2 more; "));
  CHECK(has(statement(pass_with(8), kChinese), "communication.f、另 2 项；"));
}

TEST_CASE("a pass of all checks has nothing to add, and neither have a fail and a run without a result") {
  auto verdict = pass_with(0);
  verdict.checks.resize(1);
  CHECK(statement(verdict, kEnglish) == "PASS");
  verdict = pass_with(2);
  verdict.checks[0].outcome = Outcome::NotRun;
  CHECK(statement(verdict, kEnglish) == "NOT RUN");
  verdict.checks[0].outcome = Outcome::Fail;
  CHECK(statement(verdict, kChinese) == "未通过");
}

TEST_CASE("the first line of each page has what a pass leaves open") {
  const auto verdict = pass_with(2);
  for (const auto language : {kEnglish, kChinese}) {
    const auto text = text_page(verdict, language), html = html_page(verdict, language);
    CHECK(has(text.substr(0, text.find('\n')), statement(verdict, language)));
    const auto box = html.find("<div class=\"verdict pass\">");
    CHECK(has(html.substr(box, html.find("</div></div>", box) - box), "<b>" + reservation(verdict, language) + "</b>"));
    CHECK(has(html.substr(0, html.find("</title>")), statement(verdict, language)));
  }
}

TEST_CASE("report.json names the checks that its run could not make; one that names others is refused") {
  const auto verdict = pass_with(2);
  auto json = nlohmann::json::parse(to_json(verdict).dump());
  CHECK(json["verdict"] == "PASS");
  CHECK(json["not_run"] == nlohmann::json{"communication.bandwidth", "communication.pairs"});
  CHECK(verdict_from(json) == verdict);
  json["not_run"] = nlohmann::json::array();
  CHECK_REFUSED(verdict_from(json), Format, "the report.not_run");
  json.erase("not_run");  // of a version before
  CHECK(verdict_from(json) == verdict);
}
