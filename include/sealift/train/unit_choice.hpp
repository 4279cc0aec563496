// SPDX-License-Identifier: Apache-2.0
// Which modules of a model are candidates, and what `Policy::wrap` says of each.
// First half of the plan: unit_plan.hpp makes units of the answers. Reads the model and writes nothing.
// Candidates are the modules that are held in `Shardable`, since only their calls can be intercepted.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/shardable.hpp>

#include <set>

namespace sealift::train::detail {

std::string join(const std::string& path, const std::string& name);

bool contains(const std::string& path, const std::string& other);

/// A candidate in the model, and what was chosen for it.
struct Place {
  Candidate candidate;
  UnitSlot* slot;
  std::optional<UnitOptions> options = {};  ///< none: it stays in the unit that contains it
};

/// Asks `wrap` about each place, about those within a module before the module itself, so that it can be told how much
/// is left. What would hold nothing becomes no unit, whatever the answer.
void ask(std::vector<Place>& places, const Wrap& wrap, const std::set<at::TensorImpl*>& ignored);

/// All candidates of `model` with what `policy.wrap` chose for each; throws when a pattern that it asked for matches
/// none.
std::vector<Place> choose_units(const torch::nn::Module& model, const Policy& policy,
                                const std::set<at::TensorImpl*>& ignored);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/unit_choice_inl.hpp>
#endif
