// SPDX-License-Identifier: Apache-2.0
// The pages of a comparison: what became worse is read first.
#include "verify/pages/comparison_pages.hpp"

#include "tests/verify/verdict/made_verdict.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;

TEST_CASE("a comparison's pages put the worst first, in both languages, with hostile names as text") {
  auto now = made::verdict();
  now.site = "<script>\nx";
  now.checks[1].outcome = Outcome::Pass;
  now.checks[2].outcome = Outcome::Fail;
  now.checks[2].reason = {"<b>wrong</b>", "<b>错误</b>"};
  now.checks[2].figures[0].value = 300;
  const auto before = made::verdict();
  const auto comparison = compare(before, now, 0.05);
  CHECK(comparison.worse() == 2);
  const Compared compared{before, now, "a/report.json", "b/report.json"};
  const auto html = comparison_html(comparison, compared, Language::English);
  CHECK(html.find("2 things became worse") != html.npos);
  CHECK(html.find("▼ worse") < html.find("▲ better"));
  CHECK(html.find("<script") == html.npos);
  CHECK(html.find("&lt;b&gt;wrong") != html.npos);
  CHECK(html.find("<td>372.1 GB/s</td><td>300 GB/s</td><td>-19.4 %</td>") != html.npos);
  const auto text = comparison_text(comparison, compared, Language::Chinese);
  CHECK(text.find("有 2 项变差") != text.npos);
  CHECK(text.find("错误") != text.npos);
  CHECK(text.find("\nx") == text.npos);
  const auto json = comparison_json(comparison);
  CHECK(json["worse"] == 2);
  CHECK(json["figures"][0]["turn"] == "worse");
  CHECK(json["outcomes"].size() == 2);
}
