// SPDX-License-Identifier: Apache-2.0
// A rank's timeline as events of a Chrome trace, for chrome://tracing and Perfetto.
// The monitor gives what it kept of the last steps; the texts of all ranks become one file, a process for each rank.
// Complete events ("X") only: a reader needs no second half of any, and a viewer nests them by their times.
#pragma once

#include <sealift/train/step/step_times.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sealift::trainer {

/// Something of the loop itself: a step, a checkpoint.
struct LoopSpan {
  std::string name;
  double begin = 0, end = 0;  ///< seconds, on the activities' clock
};

/// Row numbers for spans of [begin, end] so that those of one row are disjoint or, if `nested`, within one another.
std::vector<int> rows_of(const std::vector<std::pair<double, double>>& spans, bool nested);

/// The events of one rank, separated by commas. `shift`: seconds to add to all times, which fit the ranks' clocks
/// together.
std::string trace_events(std::int64_t rank, const std::string& host, const std::vector<LoopSpan>& loop,
                         const std::vector<train::TimedActivity>& activities, double shift);

/// The content of a trace file.
std::string trace_file(const std::vector<std::string>& events_of_ranks);

}  // namespace sealift::trainer
