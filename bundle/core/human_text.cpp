// SPDX-License-Identifier: Apache-2.0
// Prints sizes and fingerprints; see human_text.hpp.
#include "sealift/bundle/core/human_text.hpp"

#include <cstddef>
#include <cstdio>
#include <iterator>

namespace sealift::bundle {

std::string human_size(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string fingerprint_text(const Digest& digest) {
  return "sha256:" + digest.hex();
}

}  // namespace sealift::bundle
