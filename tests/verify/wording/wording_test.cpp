// SPDX-License-Identifier: Apache-2.0
// What a report says: words in both languages, texts of strangers, long lists said briefly, figures beside what is
// expected.
#include "tests/verify/wording/parts_of.hpp"
#include "verify/wording/figures.hpp"
#include "verify/wording/folds.hpp"
#include "verify/wording/phrases.hpp"
#include "verify/wording/texts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace sealift::verify;

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

TEST_CASE("a figure that is no number is outside of what is expected") {
  Figure figure{"rate", std::nan(""), "GB/s", 1.0, {}, ""};
  CHECK(standing_of(figure) == Standing::Outside);
  figure.at_least = {};
  CHECK(standing_of(figure) == Standing::NothingExpected);
  figure = {"rate", 3, "", 1.0, 2.0, ""};
  CHECK(standing_of(figure) == Standing::Outside);
  CHECK(expectation_text(figure, Language::English) == "from 1 to 2");
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
