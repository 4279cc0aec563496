// SPDX-License-Identifier: Apache-2.0
// Which kernel computes attention: ATen is asked, by one place, and what ran is known afterwards.
// Models call `attend_rows`; the decoder's attention asks ranks/by_length.hpp for rows that causal order does not
// describe. No maker of devices is named here: what a device can do besides ATen's own choice, its half registers.
#pragma once

#include "trainer/ranks/by_length.hpp"

#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

namespace sealift::trainer {

/// The ways of at::scaled_dot_product_attention, and sequences of different lengths in one call.
enum class AttentionWay { Math, Flash, MemoryEfficient, Cudnn, OfDevice, ByLengths, Capped, NotTold };

/// As result.json has it: math, flash, mem-efficient, cudnn, own (of a device that ATen does not know), by lengths,
/// capped (capped_attention.hpp), not told.
const char* name_of(AttentionWay way);

/// What at::scaled_dot_product_attention would take for these, [batch, heads, time, head_dim]. NotTold where the device
/// doesn't say.
AttentionWay choose_attention(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                              const std::optional<at::Tensor>& mask, bool is_causal, std::optional<double> scale);

/// at::scaled_dot_product_attention without dropout, noted. All [batch, heads, time, head_dim]; keys may have fewer
/// heads. `mask`: added to the scores.
at::Tensor attend_rows(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                       const std::optional<at::Tensor>& mask, bool is_causal, std::optional<double> scale);

/// Notes that this way ran.
void note_attention(AttentionWay way);

/// What ran in this process since it began or was told to forget; by name.
std::vector<AttentionWay> ways_that_ran();
std::vector<std::string> attention_that_ran();
void forget_attention_that_ran();

/// While it lives, what runs is noted apart, since a trial is not part of the job.
class NotesApart {
 public:
  NotesApart();
  ~NotesApart();
  NotesApart(const NotesApart&) = delete;
  NotesApart& operator=(const NotesApart&) = delete;

 private:
  std::vector<AttentionWay> before_;
};

}  // namespace sealift::trainer
