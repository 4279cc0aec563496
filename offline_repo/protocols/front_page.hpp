// SPDX-License-Identifier: Apache-2.0
// The page at an address' root, for people: what is here and who signed it, and the lines to paste for each client, in
// English or Chinese. It needs no script and nothing from elsewhere, and its policy allows none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "offline_repo/catalogue/catalogue.hpp"
#include "offline_repo/protocols/page_frame.hpp"
#include "offline_repo/protocols/page_reader.hpp"

namespace sealift::offline_repo {

// In the lines to paste: where the address goes, and what stands there only where it is plain HTTP, from one mark to
// the next. No html_escaped text of a signed name has such bytes.
inline constexpr char kUrlMark = '\x01', kRegistryMark = '\x02', kHostMark = '\x03', kPlainMark = '\x04';
// In rows: where the way from this page to the server's root goes, and where the time of the last check.
inline constexpr char kHomeMark = '\x05', kCheckMark = '\x06';

// Made once for a catalogue; a request only chooses rows and fills in the address.
class FrontPage {
 public:
  FrontPage(const Catalogue& catalogue, PageLanguage language);

  // With the rows that hold each word of `query`; empty: all of them.
  std::string text(const PageAddress& address, std::string_view query) const;

 private:
  struct Row {
    std::string words, html;                      // what is searched, in lower case
    std::shared_ptr<const LastCheck> check = {};  // of a bundle
  };
  struct Table {
    std::string title, head;
    std::vector<Row> rows;
  };

  std::string gaps_of(const Catalogue& catalogue) const;
  void add_bundles(const Catalogue& catalogue);
  void add_kept(const Catalogue& catalogue);
  void add_projects(const Catalogue& catalogue);
  void add_repositories(const Catalogue& catalogue);
  void add_images(const Catalogue& catalogue);
  void add_debian_packages(const Catalogue& catalogue);
  std::string commands(const Catalogue& catalogue) const;
  std::string row_of(const Row& row, const PageAddress& address) const;

  Words word_;
  std::string head_, lines_, tail_;  // before the tables, the lines to paste, behind the tables
  std::vector<Table> tables_;
};

}  // namespace sealift::offline_repo
