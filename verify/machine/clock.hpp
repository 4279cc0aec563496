// SPDX-License-Identifier: Apache-2.0
// How far this host's clock is from rank 0's.
// Measured by machine.clocks, on every rank at once: rank 0 answers, the first rank of each host asks.
// Cristian's algorithm (Distributed Computing 3, 1989): half the round trip bounds the error, so no network hides skew.
#pragma once

#include "verify/conduct/site.hpp"

namespace sealift::verify {

/// {"offset": s this clock is ahead of rank 0's, "bound": s, half of the shortest round trip of 16}; of rank 0 both 0;
/// of ranks that are not the first of their host null. Uses `site.master_addr` and `site.free_port`, TCP; rank 0
/// returns when all have asked, or 10 s after the last. `now` is the clock, in seconds. Throws std::runtime_error where
/// rank 0 cannot be reached within 10 s.
nlohmann::json measure_clock(const Site& site, double (*now)());

/// CLOCK_REALTIME in seconds.
double wall_clock();

}  // namespace sealift::verify
