// SPDX-License-Identifier: Apache-2.0
// First values of a model's tensors that no flat holds, and the check that every tensor will get some.
// Between `unit_plan` and `parallelize`, which calls it before and after it makes the flats.
// A tensor on the meta device must get its values from a source or from rank 0; one that gets none is an error by name.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/broadcast.hpp>
#include <sealift/train/unit_plan.hpp>

namespace sealift::train::detail {

/// Every parameter and buffer of `model`, once each, as a source is asked for them.
std::vector<WantedTensor> wanted_tensors(const torch::nn::Module& model);

/// The parameters that the policy ignores: in no unit, and whole on every rank.
std::vector<NamedTensor> ignored_parameters(const torch::nn::Module& model, const std::vector<UnitPlan>& plans);

std::vector<NamedTensor> named_buffers(const torch::nn::Module& model);

/// Throws on every rank, before anything is changed, unless each tensor of `model` will have values: those of `source`,
/// or those of rank 0, or with `sync_module_states` off each rank's own. Returns whether a rank other than 0 waits for
/// rank 0's. Collective without a source.
bool check_first_values(const torch::nn::Module& model, Groups& groups, const Policy& policy, Source* source);

/// Gives tensors that every rank holds whole their memory and their first values: from `source`, else rank 0's if
/// `from_rank_0`, else their present values. A buffer that has a value keeps it unless the source has one. Collective
/// in the second case.
void fill_whole(const std::vector<NamedTensor>& tensors, bool are_buffers, Groups& groups, Source* source,
                bool from_rank_0, const std::string& label);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/first_values_inl.hpp>
#endif
