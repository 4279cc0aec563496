// SPDX-License-Identifier: Apache-2.0
// `sealift-train check`: do several runs agree, and did they reach the entropy of the data?
// Last in the flow: result.json files in, a verdict out. Needs neither LibTorch nor the machine that trained.
// Three outcomes, never two: good, bad, cannot check (an exception).
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sealift::trainer {

/// The largest final loss that counts as learnt, as a multiple of the entropy of the data.
inline constexpr double kFloorFactor = 1.25;

struct CheckReport {
  double max_relative_difference = 0;  ///< over all steps, of any run to the first
  double digits = 0;                   ///< decimal digits that agree: -log10 of that
  double final_loss = 0;               ///< the highest of the runs
  double floor = 0;                    ///< nats per token
  std::vector<std::string> problems;   ///< empty: good
};

/// Compares the loss curves of `results` with the first one's, and each with its floor. Throws std::invalid_argument
/// when they cannot be compared: different jobs, or no results.
CheckReport check(const std::vector<nlohmann::json>& results, double tolerance, double floor_factor);

/// Reads result.json files; throws std::invalid_argument naming an unreadable one.
std::vector<nlohmann::json> read_results(const std::vector<std::string>& paths);

}  // namespace sealift::trainer
