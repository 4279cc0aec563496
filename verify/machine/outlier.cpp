// SPDX-License-Identifier: Apache-2.0
// Median, MAD and majority.
// See outlier.hpp.
// Sorting copies: there are as many values as hosts.
#include "verify/machine/outlier.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace sealift::verify {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<std::size_t> low_outliers(const std::vector<double>& values, double floor) {
  std::vector<std::size_t> found;
  if (values.size() < 3) return found;
  const auto median = median_of(values);
  std::vector<double> distances;
  for (const auto value : values) distances.push_back(std::abs(value - median));
  const auto reach = std::max(3.5 * median_of(distances) / 0.6745, floor * std::abs(median));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (median - values[i] > reach) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> unlike_most(const std::vector<std::string>& texts) {
  std::vector<std::size_t> found;
  if (texts.size() < 3) return found;
  std::map<std::string, std::size_t> counts;
  for (const auto& text : texts) ++counts[text];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second * 2 <= texts.size()) return found;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] != most->first) found.push_back(i);
  }
  return found;
}

}  // namespace sealift::verify
