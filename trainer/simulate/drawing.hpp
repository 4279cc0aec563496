// SPDX-License-Identifier: Apache-2.0
// A simulated step as pictures: an SVG for reports and pages, and a Chrome trace beside those of real runs.
// `plan` and the pages of the documentation ask; step_time.hpp gives the events.
// Self-contained text without a script or a font file, so that it shows wherever a page does, with no network.
#pragma once

#include "trainer/simulate/step_time.hpp"

#include <string>
#include <utility>
#include <vector>

namespace sealift::trainer {

/// The step as an SVG, one row for each stream that is used; what determines the end is framed. `title`: its heading.
/// Throws as `simulate` does.
std::string timeline_svg(const StepShape& shape, const Rates& rates, const std::string& title = "");

/// The step as a file for chrome://tracing and Perfetto, in the monitor's rows and words.
std::string timeline_trace(const StepShape& shape, const Rates& rates);

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
