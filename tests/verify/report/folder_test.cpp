// SPDX-License-Identifier: Apache-2.0
// The folder that a site files is read as it was written.
#include "verify/report/folder.hpp"

#include "tests/support/refusal.hpp"
#include "tests/verify/verdict/made_verdict.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

using namespace sealift::verify;
namespace fs = std::filesystem;

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
    CHECK_REFUSED(read_report(folder / "bad.json"), Format, "bad.json");
  };
  refused("");
  refused("{\"format\":1,\"format\":1}");
  refused(std::string(100000, '['));
  refused("[]");
  fs::remove(folder / "bad.json");
  if (!kept) fs::remove_all(folder);
}
