// SPDX-License-Identifier: Apache-2.0
// How fast this host's memory is.
// Measured by machine.memory_bandwidth.
// STREAM's triad (McCalpin, 1995), because published figures of machines are of it.
#pragma once

#include <cstddef>

namespace sealift::verify {

/// The best of `passes` over a[i] = b[i] + s c[i], three arrays of `numbers` doubles together, split over `threads`:
/// GB/s, counting 24 bytes an element as STREAM does. Throws std::runtime_error where the sums are wrong.
double triad_rate(std::size_t numbers, unsigned threads, int passes);

}  // namespace sealift::verify
