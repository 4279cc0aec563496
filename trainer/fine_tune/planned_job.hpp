// SPDX-License-Identifier: Apache-2.0
// A fine-tuning job as the planner sees it: the model in numbers, the way to train, the machine.
// Below method_choice, which leaves the method open, and fine_tune, which writes what was foretold beside what came.
// plan/table.hpp counts.
#pragma once

#include "trainer/models/decoder_config.hpp"
#include "trainer/plan/table.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/settings/fine_tune_options.hpp"

#include <nlohmann/json.hpp>

#include <functional>

namespace sealift::trainer {

plan::Kernels kernels_of(at::Device device);

/// The job's way, but for its method. Tokens of a row are what it may have at most, or 2,048.
plan::Way planned_way(const FineTuneOptions& options, const DecoderConfig& config, std::int64_t world_size);

/// The model that is trained; in units of blocks, however the job wraps.
plan::Candidate planned_candidate(const FineTuneOptions& options, const DecoderConfig& config);

/// Hosts and cards of a world; of a host's processors rates of no machine in particular, since what computes slowly
/// hides what it sends. Its memory is not known.
plan::Machine planned_machine(std::int64_t world_size, std::int64_t ranks_of_host, at::Device device);

/// What the plan foretells of a job whose method is settled, as result.json has it: `memory_bytes` of tensors a rank,
/// `sent_bytes` of a rank and step, and on a card `step_seconds` by rates that are assumed; or `not_known` with the
/// reason. `length` says the tokens of the longest row. Before the model has memory. Throws nothing.
nlohmann::ordered_json planned_cost(const FineTuneOptions& options, const DecoderConfig& config, const Place& place,
                                    std::int64_t ranks_of_host, const std::function<std::int64_t()>& length);

}  // namespace sealift::trainer
