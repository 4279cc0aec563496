// SPDX-License-Identifier: Apache-2.0
// What all pages for people share: their head, style and policy, cells of tables, and the two languages. They need no
// script and nothing from elsewhere, and their policy allows none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/page_reader.hpp"

namespace sealift::offline_repo {

// The text of the reader's language.
class Words {
 public:
  explicit Words(PageLanguage language) : chinese_(language == PageLanguage::Chinese) {}
  std::string operator()(const char* english, const char* chinese) const { return chinese_ ? chinese : english; }
  const std::string& operator()(const InBoth& said) const { return chinese_ ? said.chinese : said.english; }
  bool chinese() const { return chinese_; }

 private:
  bool chinese_;
};

// Up to where <main> begins, with `title` as its first heading. Where `switches`, a link to the other language; a page
// that programs mirror has none, since it would be mirrored twice.
std::string page_begin(const Words& word, const std::string& title, const std::string& lead, bool switches);
std::string page_end();

// A row of header cells, and a cell with a name that a stranger has written: one that is written from right to left
// does not reorder its neighbours.
std::string header_row(const std::vector<std::string>& cells);
std::string cell(const std::string& text);
// A cell with a digest or a commit, which may be broken anywhere.
std::string digest_cell(const std::string& digest);
// A cell with a size or a time, on one line.
std::string short_cell(const std::string& text);
// HTML: "2026-01-31T12:00:00Z (seal, chunk list, sizes)", and when each byte was read, if it was; empty if nothing was.
std::string check_html(const LastCheck::Times& times, const Words& word);
// A cell with a link; `address` is escaped already, for an address and for an attribute.
std::string link_cell(const std::string& address, const std::string& text);
std::string table_of(const std::string& head, const std::string& rows);
// Lines to copy; `html` is escaped already.
std::string lines_of(const std::string& html);

// The Content-Security-Policy header of these pages.
const std::string& page_policy();

}  // namespace sealift::offline_repo
