// SPDX-License-Identifier: Apache-2.0
// Text without what surrounds it, and text in parts: the two steps that every reader of lines takes.
// For the programs of both halves; views, so that nothing is copied before its reader knows that it wants it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace sealift::bundle {

// `text` without the characters of `blanks` at its ends.
inline std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n") {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// What stands between the separators, empty parts too: one part more than `text` has separators. The parts are views
// of `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace sealift::bundle
