// SPDX-License-Identifier: Apache-2.0
// Numbers that JSON has none for: the texts "nan", "inf" and "-inf".
// Below whatever writes results, logs and checkpoints' notes as JSON, and whatever reads them back.
// nlohmann writes null for all three, which does not say which it was, and is no number when it is read.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace sealift::trainer {

/// The text of a number that is not finite.
inline const char* text_of_not_finite(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// `json` with a text for each number in it that is not finite: what is written to a file or a pipe.
template <class Json>
Json with_all_numbers(Json json) {
  if (json.is_structured()) {
    for (auto& each : json) each = with_all_numbers(std::move(each));
  } else if (json.is_number_float()) {
    const auto value = json.template get<double>();
    if (!std::isfinite(value)) json = text_of_not_finite(value);
  }
  return json;
}

/// The number that was written as `json`; nothing for any other JSON.
template <class Json>
std::optional<double> number_in(const Json& json) {
  if (json.is_number()) return json.template get<double>();
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    if (json == text_of_not_finite(value)) return value;
  }
  return std::nullopt;
}

/// The same where a missing number is a bad one: null, which programs before this wrote, and all else is NaN.
template <class Json>
double number_or_nan(const Json& json) {
  return number_in(json).value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace sealift::trainer
