// SPDX-License-Identifier: Apache-2.0
// Trimming and splitting, and text on its way into a page.
#include "bundle/core/text_parts.hpp"

#include <doctest/doctest.h>

#include "bundle/core/unicode.hpp"
#include "sealift/bundle/core/html.hpp"

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
  for (const char* one :
       {"\x1b", "\r", "\x7f", "\xc2\x85", "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xae",
        "\xe2\x81\xa6", "\xe2\x81\xa9", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xef\xbf\xbf"})
    CHECK(page_text(std::string("a") + one + "b") == "a" + replacement + "b");
  // Cut short, overlong, a surrogate, above U+10FFFF: each byte by itself.
  CHECK(page_text("\xc3") == replacement);
  CHECK(page_text("\xc0\xaf") == replacement + replacement);
  CHECK(page_text("\xed\xa0\x80") == replacement + replacement + replacement);
  CHECK(page_text("\xf4\x90\x80\x80") == replacement + replacement + replacement + replacement);
}

TEST_CASE("text in a page is no tag, no attribute and no entity") {
  CHECK(html_escaped("<a href=\"x\" b='y'>&amp;") == "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
}
