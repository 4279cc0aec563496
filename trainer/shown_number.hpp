// SPDX-License-Identifier: Apache-2.0
// Numbers in sentences that people read: what was measured in few digits, what should have been another in all.
// Below whatever says a number in words; JSON has its own forms.
// printf's %g and streams turn 1000001 into "1e+06", and std::to_string turns 1e-9 into "0.000000".
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

namespace sealift::trainer {

/// `digits` significant ones, the whole part below 10^15 always in full: "0.333", "12346", "1.5e-09", "nan".
inline std::string shown_number(double value, int digits = 3) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  const bool in_full = size < 1e15 && (value == std::floor(value) || size >= std::pow(10, digits - 1));
  char text[64];
  if (in_full)
    std::snprintf(text, sizeof text, "%.0f", value + 0.0);
  else
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

/// Whole ones whole, others with the digits that read back to the same bits: "1000001", "0.10000000149011612",
/// "0.0005", "nan".
inline std::string exact_number(double value) {
  constexpr double kMostOfInt64 = 9223372036854775808.0;
  if (!std::isfinite(value)) return shown_number(value);
  char text[64];
  if (value == std::floor(value) && std::fabs(value) < kMostOfInt64) {
    std::snprintf(text, sizeof text, "%.0f", value + 0.0);
    return text;
  }
  const bool plain =
      std::fabs(value) >= 1e-4 && std::fabs(value) < 1e15;  // "0.0005" and "5e-05", as Python writes them
  return {text, plain ? std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr
                      : std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace sealift::trainer
