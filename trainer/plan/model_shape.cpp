// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/model_shape.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace sealift::trainer::plan {
namespace {

constexpr std::int64_t kNf4Block = 64, kNf4Group = 256, kInt8Block = 256, kPlainBlock = 16;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

std::int64_t block_of(Stored stored) {
  return stored == Stored::Plain ? kPlainBlock : stored == Stored::Nf4 ? kNf4Block : kInt8Block;
}

/// Elements of the flat with its padding: flat_layout.hpp's make_flat_layout.
std::int64_t padded_numel(const std::vector<ParameterShape>& parameters, std::int64_t shards, std::int64_t align) {
  std::int64_t total = 0, rows = align;
  bool by_rows = true;
  for (const auto& each : parameters) {
    total += round_up(each.numel, align);
    by_rows = by_rows && (rows = std::lcm(rows, each.row)) <= (std::int64_t{1} << 40);
  }
  by_rows = shards > 1 && by_rows && rows * shards * 8 <= total;
  std::int64_t end = 0;
  for (const auto& each : parameters) {
    end = round_up(end, by_rows ? std::lcm(align, each.row) : align) + each.numel;
  }
  return shards * round_up((end + shards - 1) / shards, by_rows ? rows : align);
}

}  // namespace

std::int64_t ModelShape::parameters() const {
  std::int64_t sum = 0;
  for (const auto& unit : units) {
    for (const auto& each : unit.parameters) sum += each.numel;
  }
  return sum;
}

std::int64_t ModelShape::trained() const {
  std::int64_t sum = 0;
  for (const auto& unit : units) {
    for (const auto& each : unit.parameters) sum += each.trained ? each.numel : 0;
  }
  return sum;
}

std::int64_t stored_bytes_of(Stored stored, std::int64_t numel, std::int64_t element_bytes) {
  if (stored == Stored::Plain) return numel * element_bytes;
  if (stored == Stored::Nf4) return numel / 2 + numel / kNf4Block;
  return round_up(numel, 4) + (numel + kInt8Block - 1) / kInt8Block * 4;
}

std::int64_t FlatShape::kept_bytes() const {
  return stored_bytes_of(stored(), shard(), parameters.front().element_bytes);
}

std::int64_t FlatShape::statistics_bytes() const {
  if (stored() != Stored::Nf4) return 0;
  std::int64_t sum = 0;
  for (const auto& each : parameters) {
    const auto blocks = (each.numel + kNf4Block - 1) / kNf4Block;
    sum += 4 * (1 + (blocks + kNf4Group - 1) / kNf4Group);
  }
  return sum;
}

std::vector<FlatShape> flats_of(const UnitShape& unit, std::int64_t shards) {
  std::map<std::tuple<Stored, std::int64_t, bool>, std::vector<ParameterShape>> kinds;
  for (const auto& each : unit.parameters) kinds[{each.stored, each.element_bytes, each.trained}].push_back(each);
  std::vector<FlatShape> flats;
  for (auto& [kind, parameters] : kinds) {
    const auto padded = padded_numel(parameters, shards, block_of(std::get<0>(kind)));
    flats.push_back({.parameters = std::move(parameters), .padded = padded, .shards = shards});
  }
  return flats;
}

}  // namespace sealift::trainer::plan
