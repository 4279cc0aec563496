// SPDX-License-Identifier: Apache-2.0
// Writes numbers.
// See numbers.hpp.
// printf's forms, which are those of the C locale that the program runs in.
#include "verify/wording/numbers.hpp"

#include "trainer/shown_number.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace sealift::verify {
namespace {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string number_text(double value, int digits) {
  return trainer::shown_number(value, digits);
}

std::string exact_text(double value) {
  return trainer::exact_number(value);
}

std::string percent_text(double share) {
  return number_text(share * 100) + " %";
}

std::string tick_text(double value) {
  const double size = std::fabs(value);
  for (const auto& [factor, letter] : {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e4, " k"}}) {
    const double unit = factor == 1e4 ? 1e3 : factor;
    if (size >= factor && size < 1e15) return formatted("%.6g", value / unit) + letter;
  }
  return formatted("%.6g", value + 0.0);
}

std::string seconds_text(double seconds) {
  if (!(seconds < 60)) {
    if (!std::isfinite(seconds) || seconds > 1e9) return number_text(seconds) + " s";
    const auto whole = static_cast<std::int64_t>(seconds + 0.5);
    return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  }
  return formatted("%.1f", seconds) + " s";
}

}  // namespace sealift::verify
