// SPDX-License-Identifier: Apache-2.0
// How far apart the bits lie that a test flips: next to each other, or, where a sanitizer makes each check ten times
// slower, five apart. Five and eight have no common divisor, so every place in a byte still has its turn.
#pragma once

#include <cstddef>

namespace sealift::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kBitStep = 5;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr std::size_t kBitStep = 5;
#else
inline constexpr std::size_t kBitStep = 1;
#endif
#else
inline constexpr std::size_t kBitStep = 1;
#endif

}  // namespace sealift::test
