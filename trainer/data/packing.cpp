// SPDX-License-Identifier: Apache-2.0
// Best-fit packing in time that hardly depends on how many rows are open.
// See packing.hpp. Rows that have room are kept by how much they have; a bit says which amounts there are.
// Rows of a few thousand tokens make that some dozen words to look through.
#include "trainer/data/packing.hpp"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace sealift::trainer {
namespace {

/// Rows by the tokens that they have room for.
class OpenRows {
 public:
  explicit OpenRows(std::uint64_t row_length) : by_room_(row_length), has_(row_length / 64 + 1) {}

  void add(std::uint32_t row, std::uint64_t room) {
    if (room == 0) return;
    by_room_[room].push_back(row);
    has_[room / 64] |= std::uint64_t{1} << (room % 64);
  }

  /// Takes out the row with the least room of at least `needed` and says in `room` how much that is; or kNone.
  std::uint32_t take(std::uint64_t needed, std::uint64_t& room) {
    if (needed >= by_room_.size()) return kNone;
    auto bits = has_[needed / 64] & (~std::uint64_t{0} << (needed % 64));
    for (auto word = needed / 64;; bits = has_[word]) {
      if (bits != 0) {
        room = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
        return take_from(room);
      }
      if (++word == has_.size()) return kNone;
    }
  }

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

 private:
  std::uint32_t take_from(std::uint64_t room) {
    auto& rows = by_room_[room];
    const auto row = rows.back();
    rows.pop_back();
    if (rows.empty()) has_[room / 64] &= ~(std::uint64_t{1} << (room % 64));
    return row;
  }

  std::vector<std::vector<std::uint32_t>> by_room_;
  std::vector<std::uint64_t> has_;
};

/// The examples of `order` by the row that each was given, in order within a row.
Rows gather(std::span<const std::uint32_t> order, const std::vector<std::uint32_t>& row_of, std::size_t rows) {
  Rows result;
  result.ends.assign(rows + 1, 0);
  for (const auto row : row_of) ++result.ends[row + 1];
  for (std::size_t row = 0; row < rows; ++row) result.ends[row + 1] += result.ends[row];
  result.examples.resize(order.size());
  // Each begin moves to its row's end, which is what is kept.
  for (std::size_t at = 0; at < order.size(); ++at) result.examples[result.ends[row_of[at]]++] = order[at];
  result.ends.pop_back();
  return result;
}

}  // namespace

Rows pack(std::span<const std::uint32_t> order, std::span<const std::uint64_t> lengths, std::uint64_t row_length) {
  OpenRows open(row_length);
  std::vector<std::uint32_t> row_of(order.size());
  std::uint32_t rows = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto length = lengths[at];
    if (length < 1 || length > row_length)
      throw std::invalid_argument("example " + std::to_string(order[at]) + " has " + std::to_string(length) +
                                  " tokens, more than a packed row of " + std::to_string(row_length) +
                                  "; use longer rows, or tokenize with a smaller --max-length");
    std::uint64_t room = row_length;
    auto row = open.take(length, room);
    if (row == OpenRows::kNone) {
      row = rows++;
      room = row_length;
    }
    open.add(row, room - length);
    row_of[at] = row;
  }
  return gather(order, row_of, rows);
}

Rows one_each(std::span<const std::uint32_t> order) {
  Rows rows{{order.begin(), order.end()}, {}};
  for (std::uint64_t end = 1; end <= order.size(); ++end) rows.ends.push_back(end);
  return rows;
}

}  // namespace sealift::trainer
