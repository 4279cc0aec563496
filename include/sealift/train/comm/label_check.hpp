// SPDX-License-Identifier: Apache-2.0
// Do all ranks of a group come to the same collective? Each says which it came to, before it is issued.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/comm/in_flight.hpp>

namespace sealift::train::detail {

/// Exchanges `label` with all ranks of `channel`; throws on all of them when they differ, naming who came to what.
void compare_labels(const std::shared_ptr<Channel>& channel, const Label& label);

}  // namespace sealift::train::detail

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/label_check_inl.hpp>
#endif
