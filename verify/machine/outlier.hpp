// SPDX-License-Identifier: Apache-2.0
// Which of several machines is unlike its siblings.
// Below the checks that compare hosts.
// The median and its deviation (MAD), because one slow machine among few moves a mean and a standard deviation.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sealift::verify {

double median_of(std::vector<double> values);

/// Positions of values below the others: of at least three, those whose modified z-score 0.6745 (median - x) / MAD is
/// above 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993) and that lack more than `floor` of the
/// median, so that equal machines, whose MAD is near zero, never alarm.
std::vector<std::size_t> low_outliers(const std::vector<double>& values, double floor = 0.1);

/// Positions of texts that differ from what more than half say; of at least three.
std::vector<std::size_t> unlike_most(const std::vector<std::string>& texts);

}  // namespace sealift::verify
