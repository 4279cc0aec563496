// SPDX-License-Identifier: Apache-2.0
// What the digests and rates of all devices say about each: who computes differently, and from which operation on.
// The judging half of this room's checks: measurements in, outcome and names out.
// Pure functions without LibTorch, so that tests feed them any world.
#pragma once

#include "verify/arithmetic/job.hpp"
#include "verify/conduct/check_kind.hpp"

namespace sealift::verify {

/// What devices of one kind computed elsewhere: a file of share/sealift/verify/arithmetic.
struct ArithmeticReference {
  std::string kind, torch;
  ArithmeticJob job;
  std::vector<std::string> digests;  ///< as many as `places_of(job)`
};

/// Reads every *.json of `folder`; none if there is no such folder. Throws std::invalid_argument naming file and fault.
std::vector<ArithmeticReference> read_arithmetic_references(const std::filesystem::path& folder);

/// The file's text for what `measured` computed.
std::string write_arithmetic_reference(const nlohmann::json& values);

/// Judges what `measure_same_bits` returned: {"kind", "torch", "job", "digests": hexadecimal, "runs": how many,
/// "again": the place from which a later run differs from the first, or null}. Devices are compared within one kind,
/// LibTorch and job: with the reference, else with what most of them computed, else all are named.
void judge_same_bits(const std::vector<Measured>& all, const std::vector<ArithmeticReference>& references,
                     Check& check);

/// Judges {"kind", "job", "rounds", "seconds", "fault": {"round", "place"} or null}.
void judge_heat(const std::vector<Measured>& all, Check& check);

/// Judges {"kind", "cpu", "rates": [{"name", "unit", "value"}], "processors"}: against [arithmetic.at_least] of
/// `expected` (a table of names and numbers), and against siblings of the same kind. CPU ranks share a machine, so only
/// one far below the others is named there.
void judge_rates(const std::vector<Measured>& all, const nlohmann::json& expected, Check& check);

}  // namespace sealift::verify
