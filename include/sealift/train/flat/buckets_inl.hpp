// SPDX-License-Identifier: Apache-2.0
// The bodies of buckets.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/flat/buckets.hpp>

namespace sealift::train {

SEALIFT_BODY std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<std::int64_t>& bytes,
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

SEALIFT_BODY std::vector<std::int64_t> bucket_order(const std::vector<std::int64_t>& ready, std::size_t count) {
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
