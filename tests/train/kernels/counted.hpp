// SPDX-License-Identifier: Apache-2.0
// A number that kernels' bodies take for fp32, and that knows how often each address was written.
// Tests run a body with it to see that every output is written once, and nothing else.
#pragma once

#include "trainer/kernels/values.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sealift::trainer::kernels {

struct Counted {
  float value = 0;

  Counted() = default;
  explicit Counted(float given) : value(given) {}
  Counted(const Counted&) = default;
  Counted& operator=(const Counted& other) {
    ++writes()[this];
    value = other.value;
    return *this;
  }

  static std::map<const void*, int>& writes() {
    static std::map<const void*, int> all;
    return all;
  }
};

inline float wide(const Counted& value) {
  return value.value;
}

template <>
inline Counted narrow<Counted>(float value) {
  return Counted(value);
}

/// How often a part of a tensor's memory was written: the least and the most.
inline std::pair<int, int> written(const void* address, std::size_t values) {
  std::pair<int, int> both{1 << 30, 0};
  for (std::size_t i = 0; i < values; ++i) {
    const auto found = Counted::writes().find(static_cast<const float*>(address) + i);
    const int times = found == Counted::writes().end() ? 0 : found->second;
    both = {std::min(both.first, times), std::max(both.second, times)};
  }
  return both;
}

}  // namespace sealift::trainer::kernels
