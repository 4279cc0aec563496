// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of labels, and the slopes of the logits in the logits' place, in one launch.
// The body of head.hpp, for host and device. A block has a token: its threads go through the row once with a running
// largest logit and sum of exponentials, merge them, and go through it again, out of the cache, to write
// softmax - [is label]. The label's 1 is taken away in fp32 before rounding: of a probability near 1 bf16 keeps
// nothing.
#pragma once

#include "trainer/kernels/functions.hpp"
#include "trainer/kernels/values.hpp"

namespace sealift::trainer::kernels {

struct HeadArgs {
  void* logits;             ///< [blocks, columns] without gaps
  const long long* labels;  ///< [blocks]
  float* values;            ///< [blocks]: log-probabilities; NaN for a label outside the columns
  float* normalizers;       ///< [blocks]: log sum exp
  unsigned columns;
  bool slopes;  ///< whether they are wanted; else logits stay
};

constexpr float kNothing = -__builtin_bit_cast(float, 0x7f800000u);  ///< -infinity, which adds nothing to a sum

/// The largest logit so far, and the sum of all exponentials of what they are less than it.
struct Running {
  float most, sum;
};

inline Running merge(const Running& a, const Running& b) {
  const float most = a.most > b.most ? a.most : b.most;
  // Who has seen nothing, or -infinity alone, has a sum of 0.
  if (most == kNothing) return {most, a.sum + b.sum};
  return {most, a.sum * exponential(a.most - most) + b.sum * exponential(b.most - most)};
}

constexpr unsigned kHeadThreads = 512;

template <class Value, unsigned kWidth, class Block>
void head(Block& block, const HeadArgs& args) {
  using Values = Pack<Value, kWidth>;
  constexpr unsigned kWarps = kHeadThreads / 32;
  auto* row = static_cast<Value*>(args.logits) + static_cast<long long>(block.index()) * args.columns;
  const long long label = args.labels[block.index()], end = args.columns;
  const long long column = label < 0 ? 0 : label < end ? label : end - 1;
  auto running = block.template per_thread<Running>();
  auto own = block.template per_thread<float>();
  auto* of_warps = block.template shared<Running, kWarps>();

  block.each([&](unsigned thread) {
    Running all{kNothing, 0};
    for (unsigned i = thread * kWidth; i < args.columns; i += kHeadThreads * kWidth) {
      const auto logits = *reinterpret_cast<const Values*>(row + i);
      float most = all.most;
      for (unsigned k = 0; k < kWidth; ++k) {
        const float logit = wide(logits.values[k]);
        if (logit > most) most = logit;
      }
      if (most > all.most) all = {most, all.sum * exponential(all.most - most)};
      for (unsigned k = 0; k < kWidth; ++k) {
        const float logit = wide(logits.values[k]);
        if (logit != kNothing) all.sum += exponential(logit - most);
      }
    }
    running[thread] = all;
    own[thread] = wide(row[column]);
  });
  block.over_warp(running, merge);
  block.each([&](unsigned thread) {
    if (thread % 32 == 0) of_warps[thread / 32] = running[thread];
  });
  block.last([&](unsigned thread) {
    Running all = of_warps[0];
    for (unsigned i = 1; i < kWarps; ++i) all = merge(all, of_warps[i]);
    if (thread == 0) {
      const float normalizer = logarithm(all.sum) + all.most;
      args.normalizers[block.index()] = normalizer;
      args.values[block.index()] = label == column ? own[thread] - normalizer : __builtin_bit_cast(float, 0x7fc00000u);
    }
    if (!args.slopes) return;
    for (unsigned i = thread * kWidth; i < args.columns; i += kHeadThreads * kWidth) {
      auto logits = *reinterpret_cast<const Values*>(row + i);
      for (unsigned k = 0; k < kWidth; ++k) {
        const float share = exponential(wide(logits.values[k]) - all.most) / all.sum;
        logits.values[k] = narrow<Value>(i + k == column ? share - 1 : share);
      }
      *reinterpret_cast<Values*>(row + i) = logits;
    }
  });
}

}  // namespace sealift::trainer::kernels
