// SPDX-License-Identifier: Apache-2.0
// Which of several equals is slower than the others, or unlike most of them: the one rule of all judges.
// Judges of hosts, devices, links and groups ask it.
// Median and median absolute deviation, since one bad device must not move what it is held against; a floor, since
// equals that agree to a thousandth would otherwise accuse each other; a ceiling, since three deviations of noisy rates
// reach below zero, and a link at a hundredth of the others would be as good as they.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace sealift::verify {

/// Standard deviations of a normal distribution in one median absolute deviation, and how many of them are allowed
/// (Leys et al., "Detecting outliers", Journal of Experimental Social Psychology 49, 2013).
inline constexpr double kDeviationsOfMad = 1.4826, kAllowedDeviations = 3;

/// Of the typical value: what is below this much of it is slow however noisy its equals are, unless a judge's floor
/// allows less still.
inline constexpr double kFarBelow = 0.25;

/// What a value that is typical of `values` is: their median, of an even count the upper of the two, so that of a pair
/// the better one is held against the other. 0 of none.
inline double typical_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// How far below the typical value one may be: `floor` of it (0.1: a tenth), or three deviations if that is more, but
/// not below `kFarBelow` of it for the deviations' sake.
inline double allowed_below(const std::vector<double>& values, double floor) {
  const double typical = typical_of(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - typical));
  std::sort(distances.begin(), distances.end());
  const double mad = distances.empty() ? 0 : distances[(distances.size() - 1) / 2];
  const double deviations = std::min(kAllowedDeviations * kDeviationsOfMad * mad, (1 - kFarBelow) * std::abs(typical));
  return std::max(floor * std::abs(typical), deviations);
}

/// The places of those `values` (more is better) that are below the others by more than is allowed. NaN always is.
inline std::vector<std::size_t> slow_ones(const std::vector<double>& values, double floor) {
  std::vector<double> good;
  for (const double value : values) {
    if (!std::isnan(value)) good.push_back(value);
  }
  const double least = typical_of(good) - allowed_below(good, floor);
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || values[i] < least) slow.push_back(i);
  }
  return slow;
}

/// What more than half of `values` are; nothing where nothing is.
template <class Value>
std::optional<Value> what_most_are(const std::vector<Value>& values) {
  std::map<Value, std::size_t> counts;
  for (const auto& value : values) {
    if (2 * ++counts[value] > values.size()) return value;
  }
  return std::nullopt;
}

/// The places of those `values` that are not what most are; none where nothing is.
template <class Value>
std::vector<std::size_t> unlike_most(const std::vector<Value>& values) {
  std::vector<std::size_t> unlike;
  const auto most = what_most_are(values);
  for (std::size_t i = 0; i < values.size() && most; ++i) {
    if (values[i] != *most) unlike.push_back(i);
  }
  return unlike;
}

}  // namespace sealift::verify
