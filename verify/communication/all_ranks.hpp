// SPDX-License-Identifier: Apache-2.0
// What each judge of this room reads off all ranks' measurements: facts, hosts, limits, what the site expects.
// Beside the judges; without LibTorch.
// The limits stand in one place, since a report must call the same thing slow wherever it looks.
#pragma once

#include "verify/conduct/check_kind.hpp"
#include "verify/conduct/expectations.hpp"

namespace sealift::verify {

/// Each fact of any rank once.
void take_facts(const std::vector<Measured>& all, Check& check);

/// Whether ranks compute on CPUs, and on how many hosts.
bool on_cpu(const std::vector<Measured>& all);
std::size_t number_of_hosts(const std::vector<Measured>& all);

/// From when on something counts as slow.
struct Slow {
  double floor = 0;    ///< of the typical rate: see `slow_ones`
  double seconds = 0;  ///< and at least so much longer
};
Slow slow_for(const std::vector<Measured>& all);

/// [communication.at_least_gb] of the site, GB/s by collective and for "pair".
using Expectations = std::map<std::string, double>;
Expectations communication_expectations(const nlohmann::json& expected, Culprits& culprits);

/// A collective's group as it is in measurements ("world", "replicate", "shard") and as people read it.
Phrase name_of_group(const std::string& group);

/// "gpu01 - gpu02"
Phrase pair_of(const Phrase& one, const Phrase& other);

}  // namespace sealift::verify
