// SPDX-License-Identifier: Apache-2.0
// What a test could not try on this machine, and why. The test passes, so it must be told elsewhere that it saw less:
// ctest's entry `left_out`, which runs last, lists all of it and counts as skipped.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sealift::test {

// The file that ctest named for this program, without what an earlier run wrote there; empty outside of ctest.
// Programs that this one starts are not told of it.
inline const std::string left_out_file = [] {
  const char* named = std::getenv("SEALIFT_LEFT_OUT");
  const std::string file = named == nullptr ? "" : named;
  if (file.empty()) return file;
  ::unsetenv("SEALIFT_LEFT_OUT");
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  std::filesystem::remove(file, ignored);
  return file;
}();

template <class... Parts>
void left_out(const Parts&... why) {
  std::ostringstream words;
  (words << ... << why);
  MESSAGE("left out: ", words.str());
  if (left_out_file.empty()) return;
  const auto* test = doctest::getContextOptions()->currentTest;
  std::ofstream(left_out_file, std::ios::app) << (test == nullptr ? "" : test->m_name) << ": " << words.str() << "\n";
}

}  // namespace sealift::test
