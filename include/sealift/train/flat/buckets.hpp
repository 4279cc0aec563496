// SPDX-License-Identifier: Apache-2.0
// How replicated gradients are cut into buckets, each reduced by one all-reduce.
// Below `reducer`, which fills the buckets and says when each is reduced. Pure arithmetic.
// The rule is DDP's, so that a job that moves here sends the same messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sealift/train/bodies.hpp>
#include <utility>
#include <vector>

namespace sealift::train {

/// Cuts tensors of these sizes, in order, into buckets of consecutive ones: a bucket is full when it has reached its
/// limit, `first_bytes` for the first and `other_bytes` for the others. As c10d's compute_bucket_assignment_by_size.
std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::int64_t>& bytes, std::int64_t first_bytes,
                                                     std::int64_t other_bytes);

/// The order of the buckets' `count` gradients: as they became `ready` in the first pass, each once; gradients that did
/// not become ready follow in reverse order of the model, which is about how backward runs.
std::vector<std::int64_t> bucket_order(const std::vector<std::int64_t>& ready, std::size_t count);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/flat/buckets_inl.hpp>
#endif
