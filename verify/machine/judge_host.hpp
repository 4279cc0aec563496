// SPDX-License-Identifier: Apache-2.0
// Is each host set up for training, and like its siblings; is its memory as fast, does its clock agree?
// Above host.hpp, memory_bandwidth.hpp and clock.hpp, whose values these read.
// Pure: tests feed them.
#pragma once

#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// Expectations of [machine]: shm_mib, shm_free_mib, free_gib, ib_ports (active, of each host), gpudirect and mixed
/// (whether).
void judge_hosts(const std::vector<Measured>& all, const Site& site, Check& check);

/// Expectation of [machine]: memory_bandwidth_gb, of each host.
void judge_bandwidth(const std::vector<Measured>& all, const Site& site, Check& check);

/// Expectation of [machine]: clock_skew_seconds, from the median of the hosts; without, 0.5.
void judge_clocks(const std::vector<Measured>& all, const Site& site, Check& check);

}  // namespace sealift::verify
