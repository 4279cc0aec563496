// SPDX-License-Identifier: Apache-2.0
// The training loop, one for `run` and for fine-tuning: steps, each logged, timed and, where it is due, saved.
// Between a story (verification/run, fine_tune/fine_tune), which builds the parts, and its job, which knows the model
// and the data.
// One for all: what differs between jobs is what job.hpp asks them.
// Mirrored by trainer/rehearse/rehearse.cpp (a step without its values): change both.
#pragma once

#include "trainer/loop/job.hpp"

namespace sealift::trainer {

/// A training before its first step: an optimizer over `groups`, which hold every shard of `parallel` that is trained.
Training make_training(const Place& place, train::Groups& world, train::Parallel parallel,
                       std::vector<ShardGroup> groups, const LoopOptions& options);

/// Adds to a result whether `training` is finished, what ended it and what went wrong on the way.
void add_ending(const Training& training, nlohmann::ordered_json& result);

/// Trains from where `training` stands to its end; an error names its step. Collective.
void train_to_the_end(Training& training, Job& job, Monitor& monitor);

}  // namespace sealift::trainer
