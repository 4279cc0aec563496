// SPDX-License-Identifier: Apache-2.0
// What a checkpoint costs, how often one pays, and what a lost host takes with it.
// Beside table, of whose rows it speaks; printed below the advice.
// Young's and Daly's interval (J. Daly, Future Generation Computer Systems 22, 2006): the time between checkpoints that
// wastes least, of the time that one takes and the time between failures.
#pragma once

#include "trainer/plan/advice.hpp"

#include <nlohmann/json.hpp>

namespace sealift::trainer::plan {

struct CheckpointCost {
  std::int64_t bytes = 0;       ///< of all ranks: what is trained in fp32 and its two moments, and what is not frozen
  double seconds = 0;           ///< to write it, each host its part
  double failure_seconds = 0;   ///< mean time between failures of any host
  double interval_seconds = 0;  ///< Daly's
  std::int64_t interval_steps = 0;
  double overhead = 0;        ///< part of the time: writing, and doing again what failures took
  double lost_gpu_hours = 0;  ///< of one failure: half an interval, and the restart
};

/// Of training as `row` says, where a host fails every `node_hours`.
CheckpointCost checkpoint_cost(const Row& row, const std::vector<Candidate>& candidates, const Machine& machine,
                               double node_hours);

/// Daly's interval in seconds for a checkpoint of `write` seconds and `between` seconds between failures.
double daly_interval(double write, double between);

std::string words_of(const CheckpointCost& cost, Language language);
nlohmann::ordered_json to_json(const CheckpointCost& cost);

}  // namespace sealift::trainer::plan
