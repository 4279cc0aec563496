// SPDX-License-Identifier: Apache-2.0
// A simulated step as pictures: an SVG for reports and pages, and a Chrome trace beside those of real runs.
// `plan` asks; step_time.hpp gives the events.
// Self-contained text without a script or a font file, so that it shows wherever a page does, with no network.
#pragma once

#include "trainer/simulate/step_time.hpp"

#include <string>

namespace sealift::trainer {

/// The step as an SVG, one row for each stream that is used; what determines the end is framed. `title`: its heading.
/// Throws as `simulate` does.
std::string timeline_svg(const StepShape& shape, const Rates& rates, const std::string& title = "");

/// The step as a file for chrome://tracing and Perfetto, in the monitor's rows and words.
std::string timeline_trace(const StepShape& shape, const Rates& rates);

}  // namespace sealift::trainer
