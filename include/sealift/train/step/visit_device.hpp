// SPDX-License-Identifier: Apache-2.0
// Values that live in host memory and are worked on by a device, one after the other: copy in, work, copy out.
// `FusedAdamW` sends its moments through here.
// The three run at once on streams of their own, item i + 1 coming while item i is worked on and item i - 1 goes back.
#pragma once

#include <sealift/train/bodies.hpp>
#include <sealift/train/flat/side_streams.hpp>

#include <vector>

namespace sealift::train {

/// Tensors in host memory that a device works on together.
struct Visit {
  std::vector<at::Tensor> homes;                             ///< dense; pinned, or the copies do not overlap
  std::function<void(const std::vector<at::Tensor>&)> work;  ///< on their copies, which go home after it
};

/// Sends `visits` through `device` in order; at most three are there at once. Returns when all are home: what reads
/// them next may be the host, as for a checkpoint.
void visit_device(SideStreams& streams, at::Device device, const std::vector<Visit>& visits);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/step/visit_device_inl.hpp>
#endif
