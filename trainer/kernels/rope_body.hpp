// SPDX-License-Identifier: Apache-2.0
// Queries and keys turned in one launch: each pair (a, b) of a head's halves becomes (a cos - b sin, b cos + a sin).
// The body of rope.hpp, for host and device. A block has a token and goes through the heads of both; a thread has some
// pairs that lie side by side. Backward is the same the other way. Rounded where ATen's way rounds: products with the
// cosine to the values' type, then the sum.
#pragma once

#include "trainer/kernels/values.hpp"

namespace sealift::trainer::kernels {

/// Queries or keys, [batch, time, heads, 2 * half] with any strides (in values) but 1 for the last.
struct RopeHeads {
  const void* from;
  void* to;
  long long from_batch, from_time, from_head;
  long long to_batch, to_time, to_head;
  unsigned heads;
};

struct RopeArgs {
  RopeHeads queries, keys;
  const float *cos, *sin;  ///< [batch or 1, time, half]
  long long table_batch;   ///< values from a row's tables to the next row's; 0: all rows have the same
  unsigned time, half;     ///< of a block: row index / time, token index % time
  float direction;         ///< 1, or -1 back
};

template <class Value, unsigned kWidth, class Block>
void rope(Block& block, const RopeArgs& args) {
  const unsigned row = block.index() / args.time, token = block.index() % args.time;
  const long long table = row * args.table_batch + static_cast<long long>(token) * args.half;
  const unsigned packs = args.half / kWidth;  // of a head
  const unsigned of_queries = args.queries.heads * packs, all = of_queries + args.keys.heads * packs;
  using Values = Pack<Value, kWidth>;
  using Table = Pack<float, kWidth>;
  block.last([&](unsigned thread) {
    for (unsigned i = thread; i < all; i += block.threads()) {
      const auto& heads = i < of_queries ? args.queries : args.keys;
      const unsigned inside = i < of_queries ? i : i - of_queries;
      const unsigned head = inside / packs, pair = inside % packs * kWidth;
      const auto* from = static_cast<const Value*>(heads.from) + row * heads.from_batch + token * heads.from_time +
                         head * heads.from_head + pair;
      auto* to =
          static_cast<Value*>(heads.to) + row * heads.to_batch + token * heads.to_time + head * heads.to_head + pair;
      const auto first = *reinterpret_cast<const Values*>(from);
      const auto second = *reinterpret_cast<const Values*>(from + args.half);
      const auto cos = *reinterpret_cast<const Table*>(args.cos + table + pair);
      const auto sin = *reinterpret_cast<const Table*>(args.sin + table + pair);
      Values turned_first, turned_second;
      for (unsigned k = 0; k < kWidth; ++k) {
        const float a = wide(first.values[k]), b = wide(second.values[k]);
        const float of_a = wide(narrow<Value>(a * cos.values[k])), of_b = wide(narrow<Value>(b * cos.values[k]));
        turned_first.values[k] = narrow<Value>(of_a + -args.direction * b * sin.values[k]);
        turned_second.values[k] = narrow<Value>(of_b + args.direction * a * sin.values[k]);
      }
      *reinterpret_cast<Values*>(to) = turned_first;
      *reinterpret_cast<Values*>(to + args.half) = turned_second;
    }
  });
}

}  // namespace sealift::trainer::kernels
