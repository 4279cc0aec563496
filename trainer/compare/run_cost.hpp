// SPDX-License-Identifier: Apache-2.0
// What a finished run cost: the numbers of one result.json, or of a line that bench/peers.py prints of Python's run.
// First step of `compare` and `race`; comparison.hpp puts several side by side.
// Files come from other machines: sizes are bounded, and a number that is missing or not finite is not known.
#pragma once

#include "trainer/settings/settings.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sealift::trainer::compare {

struct RunCost {
  std::string name;    ///< of its row: "fsdp x4"
  std::string method;  ///< "fsdp"
  std::int64_t ranks = 1;
  bool on_card = false;
  std::string device;                   ///< "cpu", or the card's name
  std::string precision;                ///< "fp32", "bf16"; empty: not known
  std::optional<double> peak_bytes;     ///< of the rank that took most: of a card, or of a process
  std::optional<double> planned_bytes;  ///< what `plan` foretold: tensors alone
  std::optional<double> start_up;       ///< seconds, of the slowest rank
  std::optional<double> tokens;         ///< a second and device
  std::optional<double> step;           ///< seconds
  std::optional<double> planned_step;   ///< seconds, by rates that are assumed
  std::optional<double> waiting;        ///< the share of a step that a rank waits for others, from 0 to 1
  std::optional<double> checkpoint;     ///< seconds, of the slowest save
  std::vector<double> losses;           ///< of Python's runs the first alone
  std::optional<Texts> job = {};        ///< settings that change the numbers; unknown of Python's runs
  std::string fault = {};               ///< why there is no result: of a run of `race` that failed
};

/// The run that result.json says. `name` of the file, for messages. Throws std::invalid_argument.
RunCost cost_of_result(const nlohmann::json& result, const std::string& name);

/// Of `path`: result.json, a folder that has one, or with the ending .jsonl lines of peers.py. Each row's name is its
/// own, by the folder where methods are alike. Throws std::invalid_argument or bundle::Error.
std::vector<RunCost> read_costs(const std::vector<std::string>& paths);

}  // namespace sealift::trainer::compare
