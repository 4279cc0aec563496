// SPDX-License-Identifier: Apache-2.0
// A micro-batch as tensors: what the model is called with and what the objectives need beside it.
// Last step of the data: rows of examples from the sampler and their tokens from the file in, tensors out.
// Sequences keep a number in the batch, whatever row they lie in: objectives sum by it.
#pragma once

#include "trainer/data/token_view.hpp"
#include "trainer/models/token_batch.hpp"

#include <vector>

namespace sealift::trainer {

/// Rows of examples, as a sampler gives them for one micro-batch.
using ExampleRows = std::vector<std::vector<std::uint32_t>>;

struct Batch {
  TokenBatch tokens;           ///< labels: every token that counts, and with BatchOptions::prompt_labels the others
  at::Tensor sequence;         ///< [batch, time] int64: the number of a token's sequence in the batch; -1 for padding
  at::Tensor counts;           ///< [batch, time] bool: the label here is the answer's
  at::Tensor values;           ///< [examples] fp32: margins or labels; undefined for other kinds
  std::int64_t sequences = 0;  ///< of pairs: 2 * pair is the chosen one, 2 * pair + 1 the rejected one
  std::int64_t examples = 0;
  std::int64_t desirable = 0;      ///< of labelled examples: how many have a label above a half
  std::int64_t answer_tokens = 0;  ///< labels that count: what causal_loss is divided by
};

struct BatchOptions {
  std::int64_t pad_to = 0;     ///< tokens of a row; 0: the longest row's, up to a multiple
  std::int64_t multiple = 8;   ///< of tokens of a row when pad_to is 0
  bool prompt_labels = false;  ///< labels for the prompts' tokens too: ORPO's NLL term as TRL has it
  bool packing = true;         ///< a row holds all sequences of its examples; false: a row for each sequence
  std::int64_t cut_at = 0;     ///< tokens of a mismatched sequence at most; 0: any
};

/// Tensors on the CPU. An example without a token that counts adds nothing to a sum; a row longer than pad_to is an
/// error.
Batch make_batch(const TokenView& file, const ExampleRows& rows, const BatchOptions& options = {});

/// The same examples, each prompt with the answer of the one before it in the file, the first with the last's: what
/// KTO's distance is measured on. TRL pairs neighbours too; by the file, pairs do not depend on who computes what. A
/// row for each. The file must have at least 2 examples.
Batch make_mismatched_batch(const TokenView& file, const ExampleRows& rows, const BatchOptions& options = {});

/// A batch of the right shapes that counts for nothing: for a rank that never had one (Join).
Batch empty_batch(const TokenView& file, std::int64_t tokens);

/// All tensors of `batch` on `device`.
Batch to_device(const Batch& batch, const at::Device& device);

}  // namespace sealift::trainer
