// SPDX-License-Identifier: Apache-2.0
// The pages say all that the verdict holds, in both languages, and whatever a machine is called, a page stays a page.
#include "verify/report/pages.hpp"

#include "tests/verify/report/made_verdict.hpp"
#include "verify/report/axis.hpp"
#include "verify/report/figures.hpp"
#include "verify/report/folder.hpp"
#include "verify/report/folds.hpp"
#include "verify/report/graph_picture.hpp"
#include "verify/report/matrix_picture.hpp"
#include "verify/report/phrases.hpp"
#include "verify/report/texts.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

using namespace sealift::verify;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

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

TEST_CASE("every word of the report has both languages with the same places to fill") {
  for (int i = 0; i < static_cast<int>(Word::kCount); ++i) {
    const auto which = static_cast<Word>(i);
    const auto en = word(which, Language::English), zh = word(which, Language::Chinese);
    INFO(en);
    CHECK_FALSE(en.empty());
    CHECK_FALSE(zh.empty());
    CHECK(times(en, "{}") == times(zh, "{}"));
    const bool has_chinese = std::any_of(zh.begin(), zh.end(), [](char c) { return (c & 0x80) != 0; });
    CHECK((has_chinese || zh == "Python"));
  }
  CHECK(filled(Word::Counts, Language::English, {"{}", "2", "3"}) == "{} passed, 2 failed, 3 not run");
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

TEST_CASE("bytes that are no UTF-8 become the replacement character, one for each byte, and all else stays") {
  CHECK(clean("gpu01 节点 😀\n\t") == "gpu01 节点 😀\n\t");
  CHECK(clean("a\xc3") == "a\xEF\xBF\xBD");
  CHECK(clean("\xc0\xaf") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean("\xed\xa0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(clean("\xf4\x90\x80\x80").find("\xf4") == std::string::npos);
  CHECK(clean(std::string("a\0b", 3)) ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(shortened("节点节点", 3) == "节点节…");
  CHECK(shortened("节点", 2) == "节点");
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

TEST_CASE("lists are folded without losing or adding an item") {
  CHECK(folded_numbers({9, 0, 1, 2, 3, 3, 5, 6}) == "0-3, 5, 6, 9");
  CHECK(folded_numbers({}).empty());
  CHECK(folded_names({"gpu01", "gpu02", "gpu03", "login", "gpu07"}) == "gpu[01-03,07], login");
  CHECK(folded_names({"n9", "n10", "n11"}) == "n[9-11]");
  CHECK(folded_names({"a1.site", "b1.site"}) == "a1.site, b1.site");
  CHECK(folded_names({"n99999999999999999999", "n1"}) == "n99999999999999999999, n1");
  CHECK(folded_devices({"device cuda:0: A", "device cuda:1: A", "device cpu: no GPU"}) == "2 x A; cpu: no GPU");
  CHECK(folded_devices({"cuda:0", "cuda:1 B"}) == "cuda; B");
  // Few are left as they are, with their devices; what is no rank stays itself.
  CHECK(folded_culprits({"rank 1 on a (cpu)", "file x"}, 4).items ==
        std::vector<std::string>{"rank 1 on a (cpu)", "file x"});
  const auto folded = folded_culprits({"rank 1 on a (cpu)", "rank 2 on a (cpu)", "file x", "rank x on b (cpu)"}, 3);
  CHECK(folded.items == std::vector<std::string>{"file x", "rank x on b (cpu)", "ranks 1, 2 on a"});
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

TEST_CASE("axes have a few round ticks within their ends, for any span of numbers") {
  CHECK(axis_over({0.3, 9.7}, false).ticks == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(axis_over({8, 1e9}, true).ticks.front() == doctest::Approx(100));
  CHECK(axis_over({1, 4}, true).ticks == std::vector<double>{1, 2});
  CHECK(axis_over({5, 5}, false).place(5) == doctest::Approx(0.5));
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  for (const auto& values : std::vector<std::vector<double>>{
           {}, {0}, {-most, most}, {least}, {0, least}, {1, 1 + 1e-15}, {-3e-5, 7e11}, {1e308}, {1e-12, 2e-12}}) {
    for (const bool logarithmic : {false, true}) {
      if (logarithmic && !values.empty() && values[0] <= 0) continue;
      const auto axis = axis_over(values, logarithmic);
      INFO(axis.low << " " << axis.high);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
      CHECK(axis.ticks.size() <= 13);
      CHECK(std::is_sorted(axis.ticks.begin(), axis.ticks.end()));
      CHECK(std::isfinite(axis.place(axis.ticks.back())));
    }
  }
  CHECK(tick_text(1048576) == "1.04858 M");
  CHECK(tick_text(20000) == "20 k");
  CHECK(tick_text(2e-5) == "2e-05");
}

TEST_CASE("what a graph cannot draw is counted beside it, and a gap is no line") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Graph graph{"loss", "step", "nats",
              false,  true,   {{"a", {{1, 2}, {2, 3}, {3, nan}, {4, inf}, {5, 0}, {6, 2}, {7, 1}}, false}}};
  const auto html = graph_picture(graph, Language::English);
  CHECK(has(html, "2 points are not drawn: they are infinite"));
  CHECK(has(html, "1 points are not drawn: a logarithmic axis"));
  CHECK(times(html, "<polyline") == 2);
  CHECK_FALSE(has(html, "nan"));
  CHECK_FALSE(has(html, "inf,"));
  graph.curves[0].points = {{1, nan}};
  CHECK(has(graph_picture(graph, Language::English), "There is no point to draw."));
  CHECK(has(graph_picture({}, Language::English), "There is no point to draw."));
}

TEST_CASE("many curves are drawn as their lowest, median and highest, and a long one keeps its spike") {
  Graph graph{"rates", "size", "GB/s", false, false, {}};
  for (int i = 0; i < 1000; ++i) graph.curves.push_back({"rank " + std::to_string(i), {{1, i}, {2, i}}, false});
  graph.curves.push_back({"kind", {{1, 500}, {2, 500}}, true});
  const auto html = graph_picture(graph, Language::English);
  CHECK(times(html, "<polyline") == 4);
  CHECK(has(html, "lowest of 1000 curves"));
  CHECK(has(html, "kind (expected)"));

  Graph spike{"loss", "step", "nats", false, false, {{"a", {}, false}}};
  for (int i = 0; i < 100000; ++i) spike.curves[0].points.emplace_back(i, i == 54321 ? 100 : 1);
  const auto picture = graph_picture(spike, Language::English);
  CHECK(picture.size() < 20000);
  CHECK(has(picture, ",12.0 "));  // the top of the plot
}

TEST_CASE("a large matrix is drawn in blocks that show the outlier, and its extremes are named") {
  const auto matrix = made::pairs(300);
  const auto blocks = in_blocks(matrix);
  CHECK(blocks.rows_per_cell == 10);
  CHECK(blocks.matrix.rows.size() == 30);
  CHECK(blocks.matrix.rows[0] == "gpu01 … gpu10");
  CHECK(blocks.matrix.values[0] == 18.2);  // gpu03 → gpu08
  const auto html = matrix_picture(matrix, Language::English);
  CHECK(has(html, "up to 10 × 10 values"));
  CHECK(has(html, "Lowest: gpu03 → gpu08 18.2; gpu08 → gpu03 18.2"));
  CHECK(times(html, "url(#hatch)") == 1);  // of the scale: no block is without a value
  const auto small = matrix_picture(made::pairs(8), Language::English);
  CHECK(times(small, "url(#hatch)") == 9);
  CHECK(times(small, "class=\"cell\"") == 56);
  CHECK(has(matrix_picture({"t", "u", {"a"}, {"b"}, {std::nullopt}}, Language::English), "There is no value to draw."));
}

TEST_CASE("a figure that is no number is outside of what is expected") {
  Figure figure{"rate", std::nan(""), "GB/s", 1.0, {}, ""};
  CHECK(standing_of(figure) == Standing::Outside);
  figure.at_least = {};
  CHECK(standing_of(figure) == Standing::NothingExpected);
  figure = {"rate", 3, "", 1.0, 2.0, ""};
  CHECK(standing_of(figure) == Standing::Outside);
  CHECK(expectation_text(figure, Language::English) == "from 1 to 2");
}

TEST_CASE("a folder holds the report and its pages, and what is no report is refused") {
  // With a folder in this variable the pages stay there, to be looked at.
  const auto* kept = std::getenv("SEALIFT_KEEP_PAGES");
  const fs::path folder = kept ? fs::path(kept) : fs::temp_directory_path() / ("pages-" + std::to_string(getpid()));
  fs::create_directories(folder);
  auto verdict = made::verdict();
  verdict.checks[0].reason.en = "bytes \xff of a child";
  write_report(verdict, folder);
  const auto read = read_report(folder / "report.json");
  CHECK(read.checks[0].reason.en == "bytes \xEF\xBF\xBD of a child");
  CHECK(read_bounded(folder / "report.zh.html") == html_page(read, Language::Chinese));
  CHECK(read_bounded(folder / "report.txt") == text_page(read, Language::English));
  CHECK_THROWS_AS(read_bounded(folder / "report.html", 100), std::invalid_argument);
  CHECK_THROWS_AS(read_bounded(folder), std::invalid_argument);
  CHECK_THROWS_AS(read_bounded("/dev/zero"), std::invalid_argument);
  const auto refused = [&](const std::string& text) {
    std::ofstream(folder / "bad.json") << text;
    CHECK_THROWS_AS(read_report(folder / "bad.json"), std::invalid_argument);
  };
  refused("");
  refused("{\"format\":1,\"format\":1}");
  refused(std::string(100000, '['));
  refused("[]");
  fs::remove(folder / "bad.json");
  if (!kept) fs::remove_all(folder);
}

TEST_CASE("figures, curves and culprits are named in Chinese on Chinese pages, and what a machine is called stays") {
  const auto zh = [](const std::string& text) { return phrase(text, Language::Chinese); };
  CHECK(zh("rank 3 on gpu07 (cuda:3)") == "gpu07 上的进程 3（cuda:3）");
  CHECK(zh("ranks 0-7, 9 on gpu07") == "gpu07 上的进程 0-7, 9");
  CHECK(zh("largest difference of a loss: fsdp on 2 ranks") == "损失的最大差异：2 个进程的 fsdp");
  CHECK(zh("matmul bf16, typical of NVIDIA H100") == "bf16 矩阵乘法，NVIDIA H100 的典型值");
  CHECK(zh("python3 (training.fsdp on n1) asked DNS for hub.example at 192.0.2.53:53") ==
        "python3（n1 上的 training.fsdp） 向 192.0.2.53:53 查询域名 hub.example");
  CHECK(zh("rank 12") == "进程 12");
  CHECK(zh("replicate 2 x shard 4") == "副本 2 × 分片 4");
  CHECK(zh("cases on all ranks") == "全部进程的用例数");  // and not "{} on {w} ranks"
  CHECK(zh("bus bandwidth over replicate") == "各副本之间 的总线带宽");
  CHECK(zh("bus bandwidth over shard") == "各分片之间 的总线带宽");
  CHECK(zh("data/a b.tokens on n1") == "n1 上的 data/a b.tokens");
  for (const auto* own : {"NVIDIA H100 80GB HBM3", "", "rank", "on", " on ", "{}", "{w} on", "gpu07"})
    CHECK(zh(own) == own);
  CHECK(phrase("rank 3 on n (cpu)", Language::English) == "rank 3 on n (cpu)");
  CHECK(zh(std::string(100000, '(')) == std::string(100000, '('));
  Check check;
  check.reason = {"x", "rank 3 on gpu07 (cuda:3) 较慢；rank 4 on n8 (cpu) 出错"};
  CHECK(reason_in(check, Language::Chinese) == "gpu07 上的进程 3（cuda:3） 较慢；n8 上的进程 4（cpu） 出错");
  check.reason.zh = "没有外联尝试：sealift-train, 2 ranks";
  CHECK(reason_in(check, Language::Chinese) == "没有外联尝试：sealift-train（2 个进程）");
  CHECK(reason_in(check, Language::English) == "x");
}
