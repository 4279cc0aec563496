// SPDX-License-Identifier: Apache-2.0
// Lines of the built-in table; see asked_kernels.hpp.
#include "packager/kernels/asked_kernels.hpp"

#include <sstream>

namespace sealift::packager {

using bundle::Version;

namespace {

constexpr const char* kAskedTable =
#include "packager/kernels/asked_kernels.inc"  // made of asked.tsv by CMakeLists.txt
    ;

struct AskedRow {
  std::string package, first, before, repo, revisions, when;
};

const std::vector<AskedRow>& asked_rows() {
  static const std::vector<AskedRow> rows = [] {
    std::vector<AskedRow> all;
    std::istringstream lines(kAskedTable);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line[0] == '#') continue;
      AskedRow row;
      std::istringstream columns(line);
      for (std::string* column : {&row.package, &row.first, &row.before, &row.repo, &row.revisions, &row.when})
        std::getline(columns, *column, '\t');
      all.push_back(std::move(row));
    }
    return all;
  }();
  return rows;
}

bool asks_in(const AskedRow& row, const Version& release) {
  return release >= Version::leading(row.first) && (row.before == "-" || release < Version::leading(row.before));
}

// ">=0.15.2,<0.16.0"
LoaderWindow loader_window(const std::string& text) {
  LoaderWindow window{.first = {}, .text = text};
  std::istringstream bounds(text);
  for (std::string bound; std::getline(bounds, bound, ',');)
    if (bound.starts_with(">="))
      window.first = Version::leading(bound.substr(2));
    else
      window.before = Version::leading(bound.substr(1));
  return window;
}

// "v3 or v4"
std::vector<std::string> asked_revisions(const std::string& text) {
  std::vector<std::string> revisions;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (word != "or") revisions.push_back(word);
  return revisions;
}

}  // namespace

Asking asked_by(const std::string& package, const Version& release) {
  Asking asking{.window = {.first = {}, .text = {}}, .kernels = {}};
  for (const AskedRow& row : asked_rows()) {
    if (row.package != package || !asks_in(row, release)) continue;
    if (row.when == "window")
      asking.window = loader_window(row.revisions);
    else
      asking.kernels.push_back({.repo = row.repo, .revisions = asked_revisions(row.revisions), .when = row.when});
  }
  return asking;
}

}  // namespace sealift::packager
