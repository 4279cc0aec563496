// SPDX-License-Identifier: Apache-2.0
// What all ranks of a group must agree on about one collective, and how messages name it and the ranks.
// `collectives` makes labels; it and `rank_watch` compare them between ranks.
// Hashed, so that the comparison of two ranks costs eight bytes.
#pragma once

#include <torch/torch.h>
#include <sealift/train/bodies.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sealift::train {

/// What all ranks of a group must agree on about one collective.
struct Label {
  std::string op;
  std::string unit;
  std::uint64_t detail = 0;  ///< anything else; for a reduction: which parameters have gradients
  std::int64_t numel = 0;
  at::ScalarType dtype = at::kByte;

  /// The same on every machine (FNV-1a).
  std::uint64_t hash() const;

  /// For people: reduce_scatter of unit 'layers.3' (1024 Float).
  std::string text() const;
};

/// For people: "rank 3", "ranks 0, 2".
std::string name_ranks(const std::vector<std::int64_t>& ranks);

}  // namespace sealift::train

#ifdef SEALIFT_TRAIN_BODIES
#include <sealift/train/comm/collective_label_inl.hpp>
#endif
