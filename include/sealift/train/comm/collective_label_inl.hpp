// SPDX-License-Identifier: Apache-2.0
// The bodies of collective_label.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/comm/collective_label.hpp>

#include <sstream>

namespace sealift::train {

SEALIFT_BODY std::uint64_t Label::hash() const {
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

SEALIFT_BODY std::string Label::text() const {
  std::ostringstream out;
  out << op;
  if (!unit.empty()) out << " of unit '" << unit << "'";
  out << " (" << numel << " " << dtype;
  if (detail) out << ", detail " << std::hex << detail;
  out << ")";
  return out.str();
}

SEALIFT_BODY std::string name_ranks(const std::vector<std::int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace sealift::train
