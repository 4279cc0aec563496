// SPDX-License-Identifier: Apache-2.0
// Trimming and splitting, and text on its way into a page.
#include "bundle/core/text_parts.hpp"

#include <doctest/doctest.h>

#include "bundle/core/foreign_text.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/html.hpp"
#include "sealift/bundle/core/safe_path.hpp"

using namespace sealift::bundle;

TEST_CASE("a text is trimmed at its ends only, of all blanks or of those that its format has") {
  CHECK(trimmed(" \ta b\r\n") == "a b");
  CHECK(trimmed("a") == "a");
  CHECK(trimmed(" \r\n").empty());
  CHECK(trimmed("").empty());
  CHECK(trimmed(" a\r", " ") == "a\r");
}

TEST_CASE("a text has one part more than separators, and empty parts are parts") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("a,b", ',') == Parts{"a", "b"});
  CHECK(split(",a,", ',') == Parts{"", "a", ""});
  CHECK(split("a", ',') == Parts{"a"});
  CHECK(split("", ',') == Parts{""});
}

TEST_CASE("a page shows no byte that is no UTF-8, no control character and nothing that turns its direction") {
  const std::string replacement = "\xEF\xBF\xBD";
  CHECK(page_text("a\nb\tc \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80") ==
        "a\nb\tc \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80");
  for (const char* one : {"\x1b", "\r", "\x7f", "\xc2\x85", "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
                          "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9", "\xc2\xad", "\xe2\x80\x8b", "\xe2\x80\x8d",
                          "\xe2\x81\xa0", "\xf3\xa0\x81\x81", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"})
    CHECK(page_text(std::string("a") + one + "b") == "a" + replacement + "b");
  // Cut short, overlong, a surrogate, above U+10FFFF: each byte by itself.
  CHECK(page_text("\xc3") == replacement);
  CHECK(page_text("\xc0\xaf") == replacement + replacement);
  CHECK(page_text("\xed\xa0\x80") == replacement + replacement + replacement);
  CHECK(page_text("\xf4\x90\x80\x80") == replacement + replacement + replacement + replacement);
}

TEST_CASE("a line of foreign text is one line, whose letters without a shape are seen") {
  CHECK(one_line("a\nb\tc\r\x1b[2J \xe4\xb8\xad") == "a\\u000ab\\u0009c\\u000d\\u001b[2J \xe4\xb8\xad");
  CHECK(one_line("a\xe2\x80\x8b\xe2\x80\xa8\xef\xbb\xbf") == "a\\u200b\\u2028\\ufeff");
  CHECK(terminal_text("\xf3\xa0\x81\x81") == "\\udb40\\udc41");  // a tag, as JSON writes what is above U+FFFF
  CHECK(terminal_text("\xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
}

TEST_CASE("further lines of a foreign value stand deeper than any label of ours") {
  CHECK(continued("a\nnext: b\n  c\n\n    d", 4, 12) == "a\n            next: b\n              c\n\n    d");
  CHECK(continued("a", 4, 12) == "a");
  CHECK(continued("", 4, 12).empty());
  const Error forged(ErrorCode::Digest, {.what = "bad", .got = "x\n  next:     rm -rf /\nerror[io]: y", .next = "z"});
  CHECK(std::string(forged.what()) ==
        "bad\n  got:      x\n              next:     rm -rf /\n            error[io]: y\n  next:     z");
}

TEST_CASE("what is cut in the middle of a letter ends before it") {
  CHECK(whole_letters("ab") == 2);
  CHECK(whole_letters("a\xe4\xb8\xad") == 4);
  CHECK(whole_letters("a\xe4\xb8") == 1);
  CHECK(whole_letters("a\xf0\x9f\x98") == 1);
  CHECK(whole_letters("a\xff") == 2);  // begins no letter that could go on
  CHECK(whole_letters("\xb8\xb8\xb8\xb8") == 4);
  CHECK(whole_letters("") == 0);
  std::string name = std::string(199, 'a') + "\xe4\xb8\xad\xe4\xb8\xad";
  CHECK(SafePath::printable(name) == std::string(199, 'a'));
  CHECK(SafePath::printable("\xe4\xb8\xad") == "\xe4\xb8\xad");
}

TEST_CASE("text in a page is no tag, no attribute and no entity") {
  CHECK(html_escaped("a\x1b\xe2\x80\xae") == "a\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(html_escaped("<a href=\"x\" b='y'>&amp;") == "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
}
