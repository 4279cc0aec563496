// SPDX-License-Identifier: Apache-2.0
// Causal attention whose scores are capped before the softmax, as Gemma 2's: no kernel of ATen has the cap.
// Attention calls it in place of attention_choice.hpp's where a config has a cap.
// Queries are taken a few rows at a time, and backward computes their scores again, so that no scores of a whole row
// are kept: of 16 heads over 8192 tokens these are 4 GiB a layer. Mirrored by trainer/plan/decoder_tape.cpp: change
// both.
#pragma once

#include <torch/torch.h>

#include <optional>

namespace sealift::trainer {

/// Most scores that are held at a time, forward or backward; in fp32, backward four times so many numbers.
inline constexpr std::int64_t kScoresAtATime = std::int64_t{1} << 26;

/// Rows of queries to take at a time: each sees `window` keys (0: all `seen`), so that `rows` of them together see at
/// most rows + window - 1. Their scores are at most `at_a_time`, but of one row where that is already more. `heads`: of
/// all rows of the batch.
std::int64_t capped_rows(std::int64_t heads, std::int64_t seen, std::int64_t window, std::int64_t at_a_time);

struct CappedScores {
  std::int64_t window = 0;      ///< a token sees itself and the window - 1 before it; 0: all before it
  std::optional<double> scale;  ///< unset: 1 / sqrt(head_dim)
  double cap = 0;               ///< above 0
  std::int64_t at_a_time = kScoresAtATime;
};

/// softmax(cap * tanh(scale * queries · keys / cap)) · values over what each query sees; softmax in fp32.
/// queries [batch, time, heads, head_dim] -> the same; keys and values [batch, seen, kv_heads, head_dim], of which the
/// last `time` are the queries' own. `segments`: [batch, seen], a query sees its own only; undefined: all.
at::Tensor attend_capped(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                         const at::Tensor& segments, const CappedScores& how);

}  // namespace sealift::trainer
