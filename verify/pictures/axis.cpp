// SPDX-License-Identifier: Apache-2.0
// Chooses ends and ticks of an axis.
// See axis.hpp.
// Ends lie on ticks of a linear axis, so that a curve does not end in nowhere; a log axis ends at what was measured.
#include "verify/pictures/axis.hpp"

#include <algorithm>
#include <cmath>

namespace sealift::verify {
namespace {

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
double step_above(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis linear(double low, double high) {
  // A span that doubles cannot hold, or cannot divide, is no span.
  const double middle_size = std::max(std::fabs(low), std::fabs(high));
  if (!(high - low > std::max(middle_size * 1e-12, 1e-290))) {
    const double half = middle_size > 1e-280 ? middle_size * 0.1 : 1;
    low -= half;
    high += half;
  }
  const double step = step_above((high / 5 - low / 5));
  Axis axis;
  axis.low = std::floor(low / step) * step;
  axis.high = std::ceil(high / step) * step;
  for (int i = 0; i < 12; ++i) {
    const double tick = axis.low + i * step;
    if (tick > axis.high + step / 2) break;
    axis.ticks.push_back(std::fabs(tick) < step / 1e6 ? 0 : tick);
  }
  return axis;
}

Axis logarithmic(double low, double high) {
  if (!(high > low * (1 + 1e-9))) {
    low /= 2;
    high *= 2;
  }
  Axis axis{.low = low, .high = high, .logarithmic = true, .ticks = {}};
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  const int every = std::max(1, (last - first + 7) / 8);
  const bool few = last - first <= 2;
  for (int power = first; power <= last; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, power);
      if ((factor > 1 && !few) || tick < low * (1 - 1e-9) || tick > high * (1 + 1e-9)) continue;
      axis.ticks.push_back(tick);
    }
  }
  if (axis.ticks.size() < 2) axis.ticks = {low, high};
  return axis;
}

}  // namespace

double Axis::place(double value) const {
  if (!logarithmic) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

Axis axis_over(const std::vector<double>& values, bool is_logarithmic) {
  if (values.empty()) return is_logarithmic ? logarithmic(1, 10) : linear(0, 1);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  // Beyond this, differences overflow; no measurement is there.
  constexpr double kFar = 1e300, kNear = 1e-300;
  if (is_logarithmic) return logarithmic(std::clamp(*low, kNear, kFar), std::clamp(*high, kNear, kFar));
  return linear(std::clamp(*low, -kFar, kFar), std::clamp(*high, -kFar, kFar));
}

}  // namespace sealift::verify
