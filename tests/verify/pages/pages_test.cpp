// SPDX-License-Identifier: Apache-2.0
// The pages say all that the verdict holds, in both languages, and whatever a machine is called, a page stays a page.
#include "verify/pages/pages.hpp"

#include "tests/verify/verdict/made_verdict.hpp"
#include "tests/verify/wording/parts_of.hpp"
#include "verify/wording/texts.hpp"

#include <doctest/doctest.h>

using namespace sealift::verify;

namespace {

/// `name` in each text that a stranger can choose.
Verdict named(const std::string& name) {
  auto verdict = made::verdict();
  verdict.site = verdict.started = verdict.finished = verdict.program = name;
  verdict.bundle = BundleIdentity{name, name, name, {name}};
  verdict.nodes = {{name, {0}, {name}}};
  for (auto& check : verdict.checks) {
    check.name = name;
    check.title = check.reason = {name, name};
    check.at_fault = {name};
    check.facts = {{name, name}};
    check.figures = {{name, 1, name, 2.0, {}, name}};
    check.graphs = {{name, name, name, false, false, {{name, {{0, 1}, {1, 2}}, false}, {name, {{0, 1}}, true}}}};
    check.matrices = {{name, name, {name, name}, {name}, {1.0, {}}}};
  }
  return verdict;
}

/// True if each tag that opens is closed in order; knows the tags that stand alone.
bool is_balanced(const std::string& html) {
  std::vector<std::string> open;
  for (auto at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
    const auto end = html.find('>', at);
    if (end == html.npos) return false;
    const auto tag = html.substr(at + 1, end - at - 1);
    const auto name = tag.substr(0, tag.find_first_of(" />", 1));
    if (tag[0] == '!' || tag.ends_with("/") || name == "meta" || name == "br") continue;
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("the first page says what a site files, before the first chapter") {
  const auto html = html_page(made::verdict(), Language::English);
  const auto first = html.substr(0, html.find("<section class=\"chapter"));
  for (const auto* part :
       {"✘ FAIL", "3 passed, 2 failed, 3 not run", "Example Bank, hall 2", "2026-01-31T12:00:00Z", "qwen-swift 7",
        "b7e0d1", "3a0c7e", "gpu[01-08] (8)", "0-63", "8 x NVIDIA H100 80GB HBM3", "rank 13 on gpu02 (cuda:5)",
        "gpu03 and gpu08", "part of level burn", "user namespaces are not allowed", "Approved by"}) {
    INFO(part);
    CHECK(has(first, part));
  }
  // One item for the two checks that were not run for the same reason.
  CHECK(times(first, "part of level burn") == 1);
  // A part without any check is named as not run too.
  CHECK(has(first, "Python<br><b>Reason:</b> <span class=\"reason\">no check of this part"));
}

TEST_CASE("each check stands in its part's chapter, with its figures beside what was expected") {
  const auto html = html_page(made::verdict(), Language::English);
  CHECK(times(html, "<section class=\"chapter run\">") == 4);
  CHECK(times(html, "<section class=\"chapter\">") ==
        2);  // of arithmetic and egress nothing was run; Python has no check
  CHECK(html.find("<h2>Machine</h2>") < html.find("<h2>Communication</h2>"));
  CHECK(has(html,
            "<td>bfloat16, rank 13</td><td>494.6 TFLOP/s</td><td>at least 626.4</td><td><b>✘ outside</b></td>"
            "<td>its siblings</td>"));
  CHECK(has(html, "<td>bfloat16, rank 12</td><td>703 TFLOP/s</td><td>at least 626.4</td><td>✔ as expected</td>"));
  CHECK(times(html, "<polyline class=\"expected") == 2);
  CHECK(times(html, "<figure>") == 3);
  CHECK(has(html, "SW thermal slowdown"));
  CHECK(is_balanced(html));
}

TEST_CASE("the Chinese pages are in Chinese, from the outcome to the signature block") {
  const auto verdict = made::verdict();
  const auto html = html_page(verdict, Language::Chinese), text = text_page(verdict, Language::Chinese);
  for (const auto* part : {"验证报告", "✘ 未通过", "3 项通过，2 项未通过，3 项未运行", "每对节点都达到其他节点对的速度",
                           "属于 burn 级别", "批准人"}) {
    INFO(part);
    CHECK(has(html, part));
    CHECK(has(text, part));
  }
  CHECK(has(html, "<html lang=\"zh-CN\">"));
  CHECK_FALSE(has(html, "Not run"));
  CHECK_FALSE(has(text, "part of level"));
  // A check that brings no Chinese is shown in English rather than not at all.
  CHECK(in({"only English", ""}, Language::Chinese) == "only English");
}

TEST_CASE(
    "figures, curves, facts and culprits are named in the page's language, and what a machine is called in both") {
  const auto verdict = made::verdict();
  for (const auto& page : {html_page(verdict, Language::Chinese), text_page(verdict, Language::Chinese)}) {
    for (const auto* part : {"gpu02 上的进程 13（cuda:5）", "bfloat16，进程 13", "其他同类设备", "降频原因，进程 13",
                             "软件过热降频", "NVIDIA H100 80GB HBM3"}) {
      INFO(part);
      CHECK(has(page, part));
    }
    for (const auto* part : {"rank 13", "its siblings", "throttle reasons", "SW thermal"}) {
      INFO(part);
      CHECK_FALSE(has(page, part));
    }
  }
  const auto html = html_page(verdict, Language::Chinese);
  for (const auto* part : {"各大小的总线带宽", "消息大小（字节）", "此处，64 个进程的 fsdp", "节点间带宽"})
    CHECK(has(html, part));
  const auto english = html_page(verdict, Language::English);
  CHECK(has(english, "rank 13 on gpu02 (cuda:5)"));
  CHECK_FALSE(has(english, "进程"));
}

TEST_CASE("a hostile name is text on every page, and brings no tag, no attribute and no control character") {
  const std::string name =
      "</td></svg><script>alert(1)</script>\"' onload='x\x1b[2J\x01 \xff\xfe\xc0\xaf\xed\xa0\x80 "
      "\xe2\x80\xae"
      "evil &amp; {} %s \n== Egress ==\n✔ PASS";
  const auto hostile = named(name);
  for (const auto language : {Language::English, Language::Chinese}) {
    const auto html = html_page(hostile, language), text = text_page(hostile, language);
    CHECK_FALSE(has(html, "<script"));
    CHECK_FALSE(has(html, "' onload"));
    CHECK(has(html, "&lt;script&gt;alert(1)"));
    CHECK(is_balanced(html));
    for (const auto& page : {html, text}) {
      CHECK(clean(page) == page);
      CHECK_FALSE(has(page, "\x1b"));
      CHECK_FALSE(has(page, "\xe2\x80\xae"));
    }
    // Its lines do not begin as lines of the report do.
    CHECK(times(text, "\n== " + word(Part::Egress, language) + " ==\n") == 1);
    CHECK_FALSE(has(text, "\n✔ PASS\n"));
  }
}

TEST_CASE("a thousand ranks that fail are named in a page of the length of a few") {
  Verdict verdict = made::verdict();
  verdict.nodes.clear();
  auto& check = verdict.checks[1];
  check.at_fault.clear();
  check.figures.clear();
  for (int rank = 0; rank < 1000; ++rank) {
    const auto host = "node" + std::to_string(rank / 8 + 1);
    if (rank % 8 == 0) verdict.nodes.push_back({host, {}, {}});
    verdict.nodes.back().ranks.push_back(rank);
    verdict.nodes.back().devices.push_back("device cuda:" + std::to_string(rank % 8) + ": NVIDIA H100");
    check.at_fault.push_back("rank " + std::to_string(rank) + " on " + host + " (cuda:" + std::to_string(rank % 8) +
                             ")");
    check.figures.push_back(
        {"rate, rank " + std::to_string(rank), rank == 777 ? 1.0 : 9.0, "TB/s", 5.0, {}, "its kind"});
  }
  const auto html = html_page(verdict, Language::English);
  CHECK(has(html, "node[1-125] (125)"));
  CHECK(has(html, "<td>0-999</td><td>8 x NVIDIA H100</td>"));
  CHECK(has(html, "ranks 0-7 on node1; ranks 8-15 on node2;"));
  CHECK(has(html, "and 101 more; report.json names all"));
  CHECK(has(html, "<td>rate, rank 777</td><td>1 TB/s</td>"));  // the one outside is not among those left out
  CHECK(has(html, "952 more figures are in report.json; 0 of them are outside"));
  CHECK(html.size() < 2 * html_page(made::verdict(), Language::English).size());
}

TEST_CASE("a report without checks, machines or bundle says so and is no pass") {
  const auto html = html_page({}, Language::English);
  CHECK(has(html, "○ NOT RUN"));
  CHECK(has(html, "this is not a pass"));
  CHECK(has(html, "no machine was recorded"));
  CHECK(has(html, "not run from an installed bundle"));
  CHECK(times(html, "no check of this part in this run") == 7);
  CHECK(is_balanced(html));
}
