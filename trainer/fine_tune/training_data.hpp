// SPDX-License-Identifier: Apache-2.0
// A token file as the loop uses it: checked against the model and the job, with a sampler or in order.
// Between data/ and the loop; everything that does not fit is refused before the model is loaded.
// A file of another tokenizer would train on noise without an error, so its digest is compared.
#pragma once

#include "trainer/data/batch.hpp"
#include "trainer/data/sampler.hpp"
#include "trainer/data/token_file.hpp"
#include "trainer/models/attention_check.hpp"
#include "trainer/models/decoder_config.hpp"
#include "trainer/settings/fine_tune_options.hpp"

namespace sealift::trainer {

/// Opens `path` for `options.task` and checks it: its content once on each host (`checks`), its kind, its tokenizer,
/// its vocabulary, its longest row. Throws std::invalid_argument with the remedy.
TokenFile open_tokens(const std::string& path, const FineTuneOptions& options, const DecoderConfig& config,
                      bool checks);

/// Tokens of a row where max_length does not say it, as long as the model's context has so many: what most jobs take.
inline constexpr std::int64_t kUsualRow = 2048;

/// Tokens of a packed row, or 0 without packing. Without max_length the usual ones, or the longest example if it is
/// longer: a whole context would be up to 10 million tokens of a row.
std::int64_t row_length(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config);

/// Tokens of the longest row in training: a packed one's, or the longest example's with its padding.
std::int64_t longest_row(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config);

/// What the job's rows ask of attention, those of its evaluation (null: none) and of a reference too. The answers of a
/// pair share a row, packed or not.
RowsOfJob attended_rows(const TokenFile& training, const TokenFile* evaluation, const FineTuneOptions& options,
                        const DecoderConfig& config);

/// Who gets which examples.
Sampler make_sampler(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config,
                     std::int64_t rank, std::int64_t world_size);

/// Optimizer steps of the job: max_steps, or those of all epochs.
std::int64_t steps_of(Sampler& sampler, const FineTuneOptions& options);

/// Examples of `file` in order, `rows` a batch, dealt to ranks in turn; every rank gets as many batches, the last ones
/// empty where there are not enough examples.
std::vector<ExampleRows> rows_in_order(const TokenView& file, std::int64_t rows, std::int64_t rank,
                                       std::int64_t world_size);

}  // namespace sealift::trainer
