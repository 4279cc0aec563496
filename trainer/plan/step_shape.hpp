// SPDX-License-Identifier: Apache-2.0
// What a rank computes and sends in one step of one way to train, for the simulator.
// Between memory's `Way` and simulate/step_time.hpp.
// Bytes are counted as the engine's traffic counters count them: what a rank sends, whatever the collective.
#pragma once

#include "trainer/plan/machine.hpp"
#include "trainer/plan/memory.hpp"
#include "trainer/simulate/step_time.hpp"

namespace sealift::trainer::plan {

/// Bytes that a rank sends in a step, by collective.
struct Volume {
  std::int64_t gather = 0, reduce = 0, copies = 0;  ///< all-gathers, reduce-scatters, all-reduces
  std::int64_t sum() const { return gather + reduce + copies; }
};
Volume volume_of(const ModelShape& shape, const Way& way);

/// The step of one rank, and what `machine` does in a second: rings within a host have its cards' link, others a share
/// of its network.
StepShape step_shape(const ModelShape& shape, const Way& way);
Rates rates_of(const Way& way, const Machine& machine);

/// Seconds of a step of `way`.
StepTime step_time(const ModelShape& shape, const Way& way, const Machine& machine);

}  // namespace sealift::trainer::plan
