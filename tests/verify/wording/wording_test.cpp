// SPDX-License-Identifier: Apache-2.0
// What a report says: words in both languages, texts of strangers, long lists said briefly, figures beside what is
// expected.
#include "tests/verify/verdict/english.hpp"
#include "tests/verify/wording/parts_of.hpp"
#include "verify/wording/figures.hpp"
#include "verify/wording/folds.hpp"
#include "verify/wording/numbers.hpp"
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
  // Few are left as they are, with their devices; other text stays itself.
  CHECK(english(folded_culprits({"rank 1 on a (cpu)", "file x"}, 4).items) ==
        std::vector<std::string>{"rank 1 on a (cpu)", "file x"});
  const auto folded = folded_culprits({"rank 1 on a (cpu)", "rank 2 on a (cpu)", "file x", "rank x on b (cpu)"}, 3);
  CHECK(english(folded.items) == std::vector<std::string>{"file x", "rank x on b (cpu)", "ranks 1, 2 on a"});
  CHECK(folded.items.back().zh == "a 上的进程 1, 2");
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

TEST_CASE("a number has as many digits as its reader can use, and a whole one all of them") {
  CHECK(number_text(1 / 3.0) == "0.3333");
  CHECK(number_text(16777213) == "16777213");
  CHECK(number_text(12345.678) == "12346");
  CHECK(number_text(1.5e-9) == "1.5e-09");
  CHECK(number_text(-0.0) == "0");
  CHECK(number_text(std::nan("")) == "nan");
  CHECK(number_text(-INFINITY) == "-inf");
  CHECK(number_text(2.5e12) == "2500000000000");
  CHECK(number_text(1234567890.5) == "1234567890");
  CHECK(number_text(2.5e16) == "2.5e+16");
  CHECK(exact_text(1000001) == "1000001");
  CHECK(exact_text(9007199254740992.0) == "9007199254740992");
  CHECK(exact_text(0.1f) == "0.10000000149011612");
  CHECK(exact_text(std::nextafter(1e6, 2e6)) == "1000000.0000000001");
  CHECK(exact_text(1e300) == "1e+300");
  CHECK(exact_text(std::nan("")) == "nan");
  CHECK(number_text(5.46e-6, 2) == "5.5e-06");
  CHECK(number_text(2.0000100000000001, 17) == "2.0000100000000001");
  CHECK(number_text(0.69990001, 9) == "0.69990001");
  CHECK(percent_text(0.125) == "12.5 %");
  CHECK(seconds_text(4.24) == "4.2 s");
  CHECK(seconds_text(725) == "12 min 5 s");
}
