// SPDX-License-Identifier: Apache-2.0
// A page as a value: titles, and tables of plain texts below them. It is written as HTML and as text, which therefore
// say the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sealift::packager {

struct PageSection {
  std::string title;
  std::vector<std::string> header;  // empty: rows are pairs of name and value
  std::vector<std::vector<std::string>> rows;
};

struct Page {
  std::string language;  // as HTML's `lang` takes it
  std::string title;
  std::string note;
  std::vector<PageSection> sections;
};

std::string page_html(const Page& page);
// One line a row, columns two spaces apart; the widest columns come last, so nothing needs to be aligned.
std::string page_text(const Page& page);

}  // namespace sealift::packager
