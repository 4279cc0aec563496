// SPDX-License-Identifier: Apache-2.0
// The goal of a job, and what its reference says of the data.
// Between `fine_tune`, which knows the settings, and the loop; goal.hpp has the goals themselves.
// The reference is asked once, before the first step, so that no second copy of a model is held while it trains.
#pragma once

#include "trainer/data/token_file.hpp"
#include "trainer/fine_tune/goal.hpp"
#include "trainer/ranks/place.hpp"
#include "trainer/settings/fine_tune_options.hpp"

namespace sealift::trainer {

/// What `options` minimizes, without its reference. Throws std::invalid_argument on settings that contradict each
/// other.
std::unique_ptr<Goal> make_goal(const FineTuneOptions& options, const DecoderConfig& config);

/// A goal and the data that it is for.
struct GoalOf {
  Goal* goal;
  const TokenFile* data;
};

/// Gives each goal that needs them the reference's log-probabilities: those of `ref_model`, else of `model` as it now
/// is, without its adapters unless ref_adapters names them. Collective.
void ask_reference(const std::vector<GoalOf>& goals, Model& model, const FineTuneOptions& options, const Place& place,
                   train::Groups& world);

}  // namespace sealift::trainer
