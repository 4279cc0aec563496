// SPDX-License-Identifier: Apache-2.0
// The bodies of call_order.hpp, which declares them and says what they promise.
#pragma once

#include <sealift/train/unit/call_order.hpp>

#include <algorithm>

namespace sealift::train {

SEALIFT_BODY void CallOrder::start_forward() {
  if (!recorded_.empty()) expected_ = std::move(recorded_);
  recorded_.clear();
  next_ = 0;
}

SEALIFT_BODY std::vector<std::size_t> CallOrder::before_forward(std::size_t unit, std::size_t depth, bool record) {
  if (record) recorded_.push_back(unit);
  const auto found = std::find(expected_.begin() + static_cast<std::ptrdiff_t>(next_), expected_.end(), unit);
  if (found == expected_.end()) return {};
  next_ = static_cast<std::size_t>(found - expected_.begin()) + 1;
  return others(unit, depth, expected_.begin() + static_cast<std::ptrdiff_t>(next_), expected_.end());
}

SEALIFT_BODY std::size_t CallOrder::after_forward(std::size_t unit) {
  calls_.push_back(unit);
  return calls_.size() - 1;
}

SEALIFT_BODY std::vector<std::size_t> CallOrder::before_backward(std::size_t place, std::size_t depth) const {
  if (place >= calls_.size()) return {};
  const auto rest = calls_.rbegin() + static_cast<std::ptrdiff_t>(calls_.size() - place);
  return others(calls_[place], depth, rest, calls_.rend());
}

template <class Iterator>
std::vector<std::size_t> CallOrder::others(std::size_t unit, std::size_t depth, Iterator from, Iterator end) {
  std::vector<std::size_t> units;
  for (; from != end && units.size() < depth; ++from) {
    if (*from != unit && std::find(units.begin(), units.end(), *from) == units.end()) units.push_back(*from);
  }
  return units;
}

}  // namespace sealift::train
