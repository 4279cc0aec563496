// SPDX-License-Identifier: Apache-2.0
// NF4 with double quantization decoded in one launch, to the bits that tensors' operations give.
// The body of nf4.hpp, for host and device. A thread has 8 values, whose 4 bytes lie in one block of 64: one scale. The
// meanings of the 16 codes are in shared memory, since a table that each thread indexes otherwise would be slow.
#pragma once

#include "trainer/kernels/values.hpp"

namespace sealift::trainer::kernels {

struct Nf4Args {
  const unsigned char* codes;   ///< two values a byte, the first in the high half
  const unsigned char* scales;  ///< of each 64 values
  const float *code, *map;      ///< [16], [256]
  const float* statistics;      ///< the mean scale, then the largest of each 256 scales of the parameter
  void* to;
  long long values, first_block;
};

constexpr unsigned kNf4Threads = 256, kNf4Values = 8;

template <class Value, bool kPacked, class Block>
void nf4(Block& block, const Nf4Args& args) {
  auto* table = block.template shared<float, 16>();
  block.each([&](unsigned thread) {
    if (thread < 16) table[thread] = args.code[thread];
  });
  block.last([&](unsigned thread) {
    const long long first = (static_cast<long long>(block.index()) * kNf4Threads + thread) * kNf4Values;
    if (first >= args.values) return;
    const long long number = first / 64;
    const float largest = args.statistics[1 + (args.first_block + number) / 256];
    const float scale = args.map[args.scales[number]] * largest + args.statistics[0];
    const auto* codes = args.codes + first / 2;
    auto* to = static_cast<Value*>(args.to) + first;
    if (kPacked && first + kNf4Values <= args.values) {
      const auto bytes = *reinterpret_cast<const Pack<unsigned char, kNf4Values / 2>*>(codes);
      Pack<Value, kNf4Values> values;
      for (unsigned k = 0; k < kNf4Values; k += 2) {
        values.values[k] = narrow<Value>(table[bytes.values[k / 2] >> 4] * scale);
        values.values[k + 1] = narrow<Value>(table[bytes.values[k / 2] & 15] * scale);
      }
      *reinterpret_cast<Pack<Value, kNf4Values>*>(to) = values;
      return;
    }
    for (unsigned k = 0; k < kNf4Values && first + k < args.values; ++k) {
      const unsigned byte = codes[k / 2];
      to[k] = narrow<Value>(table[k % 2 == 0 ? byte >> 4 : byte & 15] * scale);
    }
  });
}

}  // namespace sealift::trainer::kernels
