// SPDX-License-Identifier: Apache-2.0
// Many tensors from rank 0 to all ranks in few broadcasts: a model's first values, and buffers before a forward.
// Above `collectives`, which sends one tensor at a time.
// Copying the tensors into one buffer and back costs less than the latency of a collective for each.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/groups.hpp>

namespace sealift::train {

/// Every tensor = rank 0's, sent in pieces of about 25 MiB of one dtype each. Collective over `group`.
void broadcast_together(Collectives& group, const std::vector<at::Tensor>& tensors, const std::string& label);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/broadcast_inl.hpp>
#endif
