// SPDX-License-Identifier: Apache-2.0
// SwiGLU, silu(gate) * up, in one launch, and the gradients of both in another.
// The bodies of swiglu.hpp, for host and device. A thread has a pack of values of a row. Rounded to the values' type
// where ATen's way rounds: after silu, and after the gradient times up.
#pragma once

#include "trainer/kernels/functions.hpp"
#include "trainer/kernels/values.hpp"

namespace sealift::trainer::kernels {

/// All are rows of `width` values; a row's distance to the next is counted in values.
struct SwiGluArgs {
  const void *gate, *up;
  void* to;  ///< without gaps
  long long gate_row, up_row;
  unsigned width;
  unsigned packs;  ///< of all rows
};

struct SwiGluBackwardArgs {
  const void *gradient, *gate, *up;
  void *of_gate, *of_up;  ///< without gaps
  long long gradient_row, gate_row, up_row;
  unsigned width;
  unsigned packs;
};

template <class Value, unsigned kWidth, class Block>
void swiglu(Block& block, const SwiGluArgs& args) {
  using Values = Pack<Value, kWidth>;
  block.last([&](unsigned thread) {
    const unsigned pack = block.index() * block.threads() + thread;
    if (pack >= args.packs) return;
    const unsigned of_row = args.width / kWidth;
    const long long row = pack / of_row;
    const unsigned column = pack % of_row * kWidth;
    const auto gate =
        *reinterpret_cast<const Values*>(static_cast<const Value*>(args.gate) + row * args.gate_row + column);
    const auto up = *reinterpret_cast<const Values*>(static_cast<const Value*>(args.up) + row * args.up_row + column);
    Values result;
    for (unsigned k = 0; k < kWidth; ++k) {
      const float x = wide(gate.values[k]);
      const float silu = wide(narrow<Value>(x / (1 + exponential(-x))));
      result.values[k] = narrow<Value>(silu * wide(up.values[k]));
    }
    *reinterpret_cast<Values*>(static_cast<Value*>(args.to) + row * args.width + column) = result;
  });
}

template <class Value, unsigned kWidth, class Block>
void swiglu_backward(Block& block, const SwiGluBackwardArgs& args) {
  using Values = Pack<Value, kWidth>;
  block.last([&](unsigned thread) {
    const unsigned pack = block.index() * block.threads() + thread;
    if (pack >= args.packs) return;
    const unsigned of_row = args.width / kWidth;
    const long long row = pack / of_row;
    const unsigned column = pack % of_row * kWidth;
    const auto gradient =
        *reinterpret_cast<const Values*>(static_cast<const Value*>(args.gradient) + row * args.gradient_row + column);
    const auto gate =
        *reinterpret_cast<const Values*>(static_cast<const Value*>(args.gate) + row * args.gate_row + column);
    const auto up = *reinterpret_cast<const Values*>(static_cast<const Value*>(args.up) + row * args.up_row + column);
    Values of_gate, of_up;
    for (unsigned k = 0; k < kWidth; ++k) {
      const float x = wide(gate.values[k]), given = wide(gradient.values[k]);
      const float grown = 1 + exponential(-x), sigmoid = 1 / grown;
      const float of_silu = wide(narrow<Value>(given * wide(up.values[k])));
      of_gate.values[k] = narrow<Value>(of_silu * sigmoid * (1 + x * (1 - sigmoid)));
      of_up.values[k] = narrow<Value>(wide(narrow<Value>(x / grown)) * given);
    }
    const long long place = row * args.width + column;
    *reinterpret_cast<Values*>(static_cast<Value*>(args.of_gate) + place) = of_gate;
    *reinterpret_cast<Values*>(static_cast<Value*>(args.of_up) + place) = of_up;
  });
}

}  // namespace sealift::trainer::kernels
