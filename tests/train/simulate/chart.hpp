// SPDX-License-Identifier: Apache-2.0
// The curves of docs/simulate.md as an SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sealift::trainer {

/// One line of a chart.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x above 0, y
};

/// What is on a chart's axes.
struct ChartText {
  std::string title, x, y;
};

/// Lines over a logarithmic x with a label at each x of a point, and a linear y from 0 to `top`.
std::string chart_svg(const ChartText& text, const std::vector<Curve>& curves, double top);

}  // namespace sealift::trainer
