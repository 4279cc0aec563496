// SPDX-License-Identifier: Apache-2.0
// Patterns are few and short, so each name is held to each of them; see host_libraries.hpp.
#include "sealift/bundle/native/host_libraries.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "bundle/core/text_parts.hpp"
#include "sealift/bundle/core/error.hpp"
#include "sealift/bundle/core/safe_path.hpp"

namespace sealift::bundle {

bool is_host_library(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

const char* fault_of_host_library(std::string_view pattern) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._*";
  if (pattern.size() > 200) return "it has more than 200 characters";
  if (pattern.find_first_not_of(kAllowed) != pattern.npos) return "it has a character that no name of a library has";
  if (!pattern.starts_with("lib") || pattern.size() < 4 || pattern[3] == '*')
    return "it does not begin with \"lib\" and at least one more letter";
  return nullptr;
}

std::string write_host_libraries(const std::vector<std::string>& patterns) {
  std::string text;
  for (const std::string& pattern : patterns) text += pattern + "\n";
  return text;
}

std::vector<std::string> parse_host_libraries(std::string_view text, const std::string& where) {
  std::vector<std::string> patterns;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string_view line : split(text, '\n')) {
    if (const char* fault = fault_of_host_library(line))
      throw Error(ErrorCode::Format, {.what = std::string("this is no name of a library: ") + fault,
                                      .where = where,
                                      .expected = "lines such as libascendcl.so or libhccl*.so",
                                      .got = SafePath::printable(std::string(line)),
                                      .next = "do not use this bundle"});
    patterns.emplace_back(line);
  }
  return patterns;
}

}  // namespace sealift::bundle
