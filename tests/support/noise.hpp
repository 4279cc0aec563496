// SPDX-License-Identifier: Apache-2.0
// Bytes that do not shrink, always the same.
#pragma once

#include <cstdint>
#include <string>

namespace sealift::test {

inline std::string noise(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

}  // namespace sealift::test
