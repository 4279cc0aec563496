// SPDX-License-Identifier: Apache-2.0
// Answers to a few prompts between steps, to see what a training does.
// Called by the job with each evaluation or checkpoint; rank 0 writes OUT/samples.jsonl.
// Token numbers are written, and the text that the model's tokenizer makes of them where a Python has it.
#pragma once

#include "trainer/fine_tune/fine_tuning.hpp"

namespace sealift::trainer {

/// The tokens before the answer of the first `sample_prompts` examples of `file`; of a text its first half.
std::vector<std::vector<std::int64_t>> sample_prompts(const TokenView& file, std::int64_t prompts);

/// Answers the prompts greedily and appends {"step", "prompt", "answer", "text"} of each to samples.jsonl. Collective.
void write_samples(FineTuning& tuning);

}  // namespace sealift::trainer
