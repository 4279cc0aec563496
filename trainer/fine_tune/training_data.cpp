// SPDX-License-Identifier: Apache-2.0
// What must hold of a token file before it is trained on, and how its examples are dealt.
// See training_data.hpp.
// Lengths are looked at for all examples: a row that does not fit would otherwise end a run after hours.
#include "trainer/fine_tune/training_data.hpp"

#include "trainer/settings/refuse.hpp"

#include <sealift/train/checkpoint/digest.hpp>

#include <cmath>
#include <fstream>

namespace sealift::trainer {
namespace {

void check_kind(const TokenFile& file, Task task, const std::string& path) {
  const auto kind = file->header().kind;
  const bool takes_pairs = task == Task::Dpo || task == Task::Reward;
  const bool fits = takes_pairs              ? kind == ExampleKind::Preference
                    : task == Task::Kto      ? kind == ExampleKind::Labelled
                    : task == Task::Pretrain ? kind == ExampleKind::Text
                                             : kind == ExampleKind::Chat || kind == ExampleKind::Text;
  if (fits) return;
  const auto* wanted = takes_pairs              ? "pairs of a chosen and a rejected answer (preference)"
                       : task == Task::Kto      ? "answers with a label, true or false (labelled)"
                       : task == Task::Pretrain ? "documents (text)"
                                                : "prompts with answers (chat)";
  refuse(path + " holds examples of the kind " + name_of(kind) + "; this verb needs " + wanted);
}

void check_tokenizer(const TokenFile& file, const std::string& model, const std::string& path) {
  const auto tokenizer = std::filesystem::path(model) / "tokenizer.json";
  if (!std::filesystem::exists(tokenizer)) return;
  train::Sha256 digest;
  std::ifstream stream(tokenizer, std::ios::binary);
  std::vector<char> piece(1 << 20);
  while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size())) || stream.gcount() > 0) {
    digest.update(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  const auto found = digest.hex();
  if (found == file->header().tokenizer_sha256) return;
  refuse(path + " was made with a tokenizer.json of SHA-256 " + file->header().tokenizer_sha256 + "; " +
         tokenizer.string() + " has " + found + "; tokenize the data with this model");
}

void check_lengths(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config,
                   const std::string& path) {
  const auto sequences = file->header().sequences;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto tokens = static_cast<std::int64_t>(file->length(i));
    const auto most = options.max_length > 0 ? options.max_length : config.max_positions;
    if (tokens <= most) continue;
    refuse(path + ": sequence " + std::to_string(i) + " has " + std::to_string(tokens) + " tokens, more than " +
           (options.max_length > 0 ? "max_length, " : "the model's max_position_embeddings, ") + std::to_string(most) +
           "; tokenize with --max-length " + std::to_string(most) + ", or raise it");
  }
}

/// transformers' reward models score the last token that is not padding, and ours the last one.
void check_padding(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config,
                   const std::string& path) {
  if (options.task != Task::Reward || !config.padding_token) return;
  for (std::uint64_t i = 0; i < file->header().sequences; ++i) {
    const auto sequence = file->sequence(i);
    if (sequence.token(sequence.size() - 1) != *config.padding_token) continue;
    refuse(path + ": sequence " + std::to_string(i) + " ends with token " + std::to_string(*config.padding_token) +
           ", which is pad_token_id in " + options.model + "/config.json: transformers would score the token before " +
           "it. Set pad_token_id there to a token that ends no sequence");
  }
}

/// Tokens of the longest example: both answers of a pair, which share a row.
std::int64_t longest_example(const TokenFile& file) {
  std::uint64_t longest = 1;
  for (std::uint64_t i = 0; i < file->examples(); ++i) longest = std::max(longest, file->example_length(i));
  return static_cast<std::int64_t>(longest);
}

/// Tokens of a row that is not packed, with what make_batch adds to `longest`.
std::int64_t padded(std::int64_t longest) {
  constexpr auto multiple = BatchOptions{}.multiple;
  return (longest + multiple - 1) / multiple * multiple;
}

}  // namespace

TokenFile open_tokens(const std::string& path, const FineTuneOptions& options, const DecoderConfig& config,
                      bool checks) {
  auto file = TokenFile::open(path);
  if (checks) file.check_content();
  check_kind(file, options.task, path);
  check_tokenizer(file, options.model, path);
  const auto vocabulary = static_cast<std::int64_t>(file->header().vocabulary);
  if (vocabulary > config.vocabulary) {
    refuse(path + " has tokens up to " + std::to_string(vocabulary) + "; the model's embedding has " +
           std::to_string(config.vocabulary) + " rows; tokenize the data with this model");
  }
  if (file->examples() == 0) refuse(path + " holds no examples");
  if (options.task == Task::Kto && file->examples() == 1) refuse(path + " holds 1 example; KTO needs at least 2");
  check_lengths(file, options, config, path);
  if (checks) check_padding(file, options, config, path);
  return file;
}

std::int64_t row_length(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config) {
  if (!options.packing) return 0;
  if (options.max_length > 0) return options.max_length;
  return std::max(std::min(config.max_positions, kUsualRow), longest_example(file));
}

std::int64_t longest_row(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config) {
  return options.packing ? row_length(file, options, config) : padded(longest_example(file));
}

RowsOfJob attended_rows(const TokenFile& training, const TokenFile* evaluation, const FineTuneOptions& options,
                        const DecoderConfig& config) {
  auto longest = longest_row(training, options, config);
  if (evaluation) longest = std::max(longest, padded(longest_example(*evaluation)));
  // KTO's reference reads prompts with the answers of others, cut where goals.cpp cuts them.
  const auto most = options.max_length > 0 ? options.max_length : config.max_positions;
  if (options.task == Task::Kto) longest = std::max(longest, padded(std::min(most, 2 * longest)));
  return {.packed = options.packing || training->sequences_of_example() > 1, .longest = longest};
}

Sampler make_sampler(const TokenFile& file, const FineTuneOptions& options, const DecoderConfig& config,
                     std::int64_t rank, std::int64_t world_size) {
  const auto* view = &file.view();
  return Sampler(
      view->examples(), [view](std::uint64_t example) { return view->example_length(example); },
      view->header().content_sha256,
      {.seed = static_cast<std::uint64_t>(options.data_seed),
       .shuffle = options.train_dataloader_shuffle,
       .packing = options.packing,
       .row_length = static_cast<std::uint64_t>(row_length(file, options, config)),
       .global_rows = options.per_device_train_batch_size * options.micro_batches(world_size) * world_size,
       .micro_rows = options.per_device_train_batch_size},
      rank, world_size);
}

std::int64_t steps_of(Sampler& sampler, const FineTuneOptions& options) {
  if (options.max_steps > 0) return options.max_steps;
  const auto whole = static_cast<std::int64_t>(std::floor(options.num_train_epochs));
  const auto rest = options.num_train_epochs - static_cast<double>(whole);
  std::int64_t steps = 0;
  for (std::int64_t epoch = 0; epoch < whole; ++epoch) steps += sampler.steps(epoch);
  if (rest > 0) steps += static_cast<std::int64_t>(std::ceil(rest * static_cast<double>(sampler.steps(whole))));
  return std::max<std::int64_t>(1, steps);
}

std::vector<ExampleRows> rows_in_order(const TokenView& file, std::int64_t rows, std::int64_t rank,
                                       std::int64_t world_size) {
  const auto examples = static_cast<std::int64_t>(file.examples());
  const auto at_once = rows * world_size;
  std::vector<ExampleRows> batches;
  for (std::int64_t first = 0; first < examples; first += at_once) {
    auto& batch = batches.emplace_back();
    const auto begin = first + rank * rows;
    for (auto example = begin; example < std::min(begin + rows, examples); ++example) {
      batch.push_back({static_cast<std::uint32_t>(example)});
    }
  }
  return batches;
}

}  // namespace sealift::trainer
