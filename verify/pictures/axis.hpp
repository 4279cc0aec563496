// SPDX-License-Identifier: Apache-2.0
// One axis of a picture: which values it spans, where they lie, and ticks that a reader can read.
// Below graph_picture.
// Steps are 1, 2 or 5 times a power of ten; a logarithmic axis has decades, and 2 and 5 where it has few of them.
#pragma once

#include <vector>

namespace sealift::verify {

struct Axis {
  double low = 0, high = 1;  ///< of the axis; low < high
  bool logarithmic = false;
  std::vector<double> ticks;  ///< 2 to 10, rising, within low and high

  /// 0 at `low`, 1 at `high`. Of a logarithmic axis `value` must be above 0.
  double place(double value) const;
};

/// An axis over finite values (above 0 if logarithmic). No values: 0 to 1. Equal values lie in its middle.
Axis axis_over(const std::vector<double>& values, bool logarithmic);

}  // namespace sealift::verify
