// SPDX-License-Identifier: Apache-2.0
// How long one optimizer step takes: computing, communication that computing does not hide, host copies, optimizer.
// `plan` asks for every candidate; drawing.hpp draws the events. Bytes and operations come from the caller, who knows
// the model. The engine's own order (unit_inl.hpp, call_order.hpp, reducer.hpp) is played with a clock, so that what is
// hidden is a result and not a factor. Pure arithmetic: neither LibTorch nor time.
#pragma once

#include "trainer/simulate/step.hpp"

#include <utility>

namespace sealift::trainer {

/// Throws std::invalid_argument for shapes and rates that no step has.
StepTime simulate(const StepShape& shape, const Rates& rates);

/// The same step's events, in the order of the engine's calls: a transfer or copy where it is issued, all else where it
/// ends. A transfer's event begins when it gets the link.
std::vector<StepEvent> simulate_events(const StepShape& shape, const Rates& rates);

/// Seconds of the critical chain by activity, the longest first: what to change first.
std::vector<std::pair<StepActivity, double>> critical_parts(const std::vector<StepEvent>& events);

}  // namespace sealift::trainer
