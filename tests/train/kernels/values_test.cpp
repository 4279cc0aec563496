// SPDX-License-Identifier: Apache-2.0
// The numbers of kernels are c10's: every half is widened alike, and rounding is to the nearest, of two to the even
// one.
#include "trainer/kernels/values.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

namespace {

namespace kernels = sealift::trainer::kernels;

/// Whether two are the same to the bit; any NaN is any other.
bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : __builtin_bit_cast(unsigned, a) == __builtin_bit_cast(unsigned, b);
}

template <class Ours, class Theirs>
void check_all(std::mt19937& random) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<unsigned short>(bits);
    const float expected = static_cast<float>(Theirs(half, Theirs::from_bits()));
    REQUIRE(same(kernels::wide(Ours{half}), expected));
    // It, what lies half way to the next one, and the neighbours of that in fp32.
    const float next = static_cast<float>(Theirs(static_cast<unsigned short>(bits + 1), Theirs::from_bits()));
    const float middle = expected / 2 + next / 2;
    for (const float value : {expected, middle, std::nextafter(middle, 1e38F), std::nextafter(middle, -1e38F)}) {
      REQUIRE(same(kernels::wide(kernels::narrow<Ours>(value)), static_cast<float>(Theirs(value))));
    }
  }
  for (int i = 0; i < 100'000; ++i) {
    const auto value = __builtin_bit_cast(float, static_cast<unsigned>(random()));
    REQUIRE(same(kernels::wide(kernels::narrow<Ours>(value)), static_cast<float>(Theirs(value))));
  }
}

}  // namespace

TEST_CASE("bf16 and fp16 are widened and rounded as c10 does it") {
  std::mt19937 random(3);
  check_all<kernels::Bf16, c10::BFloat16>(random);
  check_all<kernels::Fp16, c10::Half>(random);
}
