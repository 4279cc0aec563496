// SPDX-License-Identifier: Apache-2.0
// One job under several methods, one after another: this program starts itself for each, and reads what it cost.
// Below the verb `race`; comparison.hpp puts the costs side by side.
// A method that fails is a row with its reason, and the others still run.
#pragma once

#include "trainer/compare/run_cost.hpp"

#include <chrono>
#include <functional>

namespace sealift::trainer::compare {

struct RaceOptions {
  std::string program;                  ///< sealift-train
  std::string verb;                     ///< sft, dpo, kto, reward, pretrain or run
  std::string job;                      ///< a job file of that verb
  std::vector<std::string> methods;     ///< of method_names()
  std::int64_t ranks = 0;               ///< 0: one process
  std::int64_t steps = 8;               ///< of each; the first is left out of speeds
  std::int64_t shard_size = 0;          ///< of hsdp
  std::filesystem::path out;            ///< a folder a method; must not have one of them
  std::vector<std::string> settings;    ///< more flags, for each run
  std::chrono::seconds patience{3600};  ///< for each
};

/// none, ddp, fsdp, shard_grad_op, hsdp.
std::vector<std::string> method_names();

/// A run a method, in their order; `says` gets a line before each. Leaves OUT/METHOD/result.json and log.jsonl; the
/// checkpoint and the trained model, which were written to be timed, are removed. Throws std::invalid_argument for an
/// unknown method, one that is given twice, and where OUT has a folder of one.
std::vector<RunCost> race(const RaceOptions& options, const std::function<void(const std::string&)>& says);

}  // namespace sealift::trainer::compare
