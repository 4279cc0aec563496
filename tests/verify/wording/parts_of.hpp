// SPDX-License-Identifier: Apache-2.0
// Whether and how often a text holds another.
// For the tests of what a report says and shows.
#pragma once

#include <string>

namespace sealift::verify {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

inline std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace sealift::verify
