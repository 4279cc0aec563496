// SPDX-License-Identifier: Apache-2.0
// Texts by the reader of UTF-8 that the tools have.
// See texts.hpp.
// One home for what is UTF-8 and what may be shown, so that a report and a terminal agree.
#include "verify/wording/texts.hpp"

#include "bundle/core/foreign_text.hpp"
#include "sealift/bundle/core/html.hpp"

namespace sealift::verify {

std::string clean(std::string_view text) {
  return bundle::page_text(text);
}

std::string escaped(std::string_view text) {
  return bundle::html_escaped(text);
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : clean(text)) {
    if (c == '\n')
      line += "⏎";
    else
      line += c == '\t' ? ' ' : c;
  }
  return line;
}

std::string shortened(std::string_view text, std::size_t characters) {
  auto whole = clean(text);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if ((static_cast<unsigned char>(whole[i]) & 0xC0) == 0x80) continue;
    if (seen++ == characters) return whole.substr(0, i) + "…";
  }
  return whole;
}

}  // namespace sealift::verify
