// SPDX-License-Identifier: Apache-2.0
// How replicated gradients are cut into buckets, each reduced by one all-reduce.
// Below `reducer`, which fills the buckets and says when each is reduced. Pure arithmetic.
// The rule is DDP's, so that a job that moves here sends the same messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sealift::train {

/// Cuts tensors of these sizes, in order, into buckets of consecutive ones: a bucket is full when it has reached its
/// limit, `first_bytes` for the first and `other_bytes` for the others. As c10d's compute_bucket_assignment_by_size.
inline std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::int64_t>& bytes,
                                                            std::int64_t first_bytes, std::int64_t other_bytes) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t filled = 0;
  bool open = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (!std::exchange(open, true)) buckets.emplace_back();
    buckets.back().push_back(i);
    filled += bytes[i];
    if (filled >= (buckets.size() == 1 ? first_bytes : other_bytes)) {
      open = false;
      filled = 0;
    }
  }
  return buckets;
}

/// The order of the buckets' `count` gradients: as they became `ready` in the first pass, each once; those that did not
/// become ready follow in reverse order of the model, which is about how backward runs.
inline std::vector<std::int64_t> bucket_order(const std::vector<std::int64_t>& ready, std::size_t count) {
  std::vector<std::int64_t> order;
  std::vector<bool> known(count, false);
  const auto add = [&](std::int64_t index) {
    if (!known[static_cast<std::size_t>(index)]) order.push_back(index);
    known[static_cast<std::size_t>(index)] = true;
  };
  for (const auto index : ready) add(index);
  for (auto index = static_cast<std::int64_t>(count); index-- > 0;) add(index);
  return order;
}

}  // namespace sealift::train
