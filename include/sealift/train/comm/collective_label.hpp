// SPDX-License-Identifier: Apache-2.0
// What all ranks of a group must agree on about one collective, and how messages name it and the ranks.
// `collectives` makes labels; it and `rank_watch` compare them between ranks.
// Hashed, so that the comparison of two ranks costs eight bytes.
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <sstream>
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
  std::uint64_t hash() const {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&](const void* data, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    };
    const std::array<std::uint64_t, 3> numbers{detail, static_cast<std::uint64_t>(numel),
                                               static_cast<std::uint64_t>(dtype)};
    add(op.c_str(), op.size() + 1);
    add(unit.c_str(), unit.size() + 1);
    add(numbers.data(), sizeof numbers);
    return hash;
  }

  /// For people: reduce_scatter of unit 'layers.3' (1024 Float).
  std::string text() const {
    std::ostringstream out;
    out << op;
    if (!unit.empty()) out << " of unit '" << unit << "'";
    out << " (" << numel << " " << dtype;
    if (detail) out << ", detail " << std::hex << detail;
    out << ")";
    return out.str();
  }
};

/// For people: "rank 3", "ranks 0, 2".
inline std::string name_ranks(const std::vector<std::int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace sealift::train
