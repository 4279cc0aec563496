// SPDX-License-Identifier: Apache-2.0
// Examples laid into rows of one length, so that little of a row is padding.
// For the sampler, on the lengths of the shuffled examples; pure arithmetic.
// Best fit, one example after the other: within a few per cent of sorting first, and neighbours stay random.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sealift::trainer {

/// Examples by row, in one array: row r is `examples[ends[r-1]] … examples[ends[r]-1]`.
struct Rows {
  std::vector<std::uint32_t> examples;
  std::vector<std::uint64_t> ends;

  std::size_t size() const { return ends.size(); }
  std::span<const std::uint32_t> operator[](std::size_t row) const {
    const auto begin = row == 0 ? 0 : ends[row - 1];
    return std::span(examples).subspan(begin, ends[row] - begin);
  }
};

/// `lengths[i]` tokens of example `order[i]`, each at least 1 and at most `row_length`, into rows of at most
/// `row_length`: each example into the row with the least room that has enough, of several the most recently used;
/// else into a new one. Rows are in the order in which they were begun.
Rows pack(std::span<const std::uint32_t> order, std::span<const std::uint64_t> lengths, std::uint64_t row_length);

/// One example a row, in order.
Rows one_each(std::span<const std::uint32_t> order);

}  // namespace sealift::trainer
