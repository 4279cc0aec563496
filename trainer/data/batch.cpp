// SPDX-License-Identifier: Apache-2.0
// Fills a micro-batch's tensors, row by row.
// See batch.hpp. A sequence is a list of tokens with a bit each; what the model must predict is the next one's.
// Rows are laid out before any tensor is made, so that sizes are known once.
#include "trainer/data/batch.hpp"

#include <algorithm>
#include <stdexcept>

namespace sealift::trainer {
namespace {

/// A sequence that is to be laid into a row.
struct Piece {
  std::vector<std::uint32_t> tokens;
  std::vector<bool> counts;
  std::int64_t number = 0;  ///< in the batch
};

using PieceRows = std::vector<std::vector<Piece>>;

Piece piece_of(const TokenSequence& sequence, std::int64_t number) {
  Piece piece{.tokens = {}, .counts = {}, .number = number};
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    piece.tokens.push_back(sequence.token(at));
    piece.counts.push_back(sequence.counts(at));
  }
  return piece;
}

std::int64_t length_of(const std::vector<Piece>& row) {
  std::int64_t length = 0;
  for (const auto& piece : row) length += static_cast<std::int64_t>(piece.tokens.size());
  return length;
}

std::int64_t time_of(const PieceRows& rows, const BatchOptions& options) {
  std::int64_t longest = 1;
  for (const auto& row : rows) longest = std::max(longest, length_of(row));
  if (options.pad_to == 0) return (longest + options.multiple - 1) / options.multiple * options.multiple;
  if (longest > options.pad_to)
    throw std::invalid_argument("a row has " + std::to_string(longest) + " tokens, more than the " +
                                std::to_string(options.pad_to) + " of a row; use longer rows, or tokenize with a " +
                                "smaller --max-length");
  return options.pad_to;
}

/// The tensors of a batch while they are filled.
class Filling {
 public:
  Filling(std::int64_t rows, std::int64_t time, bool prompt_labels) : prompt_labels_(prompt_labels) {
    const auto of = [&](std::int64_t value) { return torch::full({rows, time}, value, torch::kInt64); };
    batch_.tokens = {.ids = of(0), .positions = of(0), .segments = of(-1), .labels = of(kNoLabel)};
    batch_.sequence = of(-1);
    batch_.counts = torch::zeros({rows, time}, torch::kBool);
  }

  void add(std::int64_t row, const std::vector<Piece>& pieces) {
    std::int64_t begin = 0;
    for (std::size_t segment = 0; segment < pieces.size(); ++segment) {
      add(row, begin, static_cast<std::int64_t>(segment), pieces[segment]);
      begin += static_cast<std::int64_t>(pieces[segment].tokens.size());
    }
  }

  Batch take() {
    batch_.tokens = with_shape(std::move(batch_.tokens));
    return std::move(batch_);
  }

 private:
  void add(std::int64_t row, std::int64_t begin, std::int64_t segment, const Piece& piece) {
    const auto at = [&](const at::Tensor& tensor) {
      return tensor.mutable_data_ptr<std::int64_t>() + row * tensor.size(1) + begin;
    };
    auto *ids = at(batch_.tokens.ids), *positions = at(batch_.tokens.positions), *labels = at(batch_.tokens.labels),
         *segments = at(batch_.tokens.segments), *sequence = at(batch_.sequence);
    bool* counts = batch_.counts.mutable_data_ptr<bool>() + row * batch_.counts.size(1) + begin;
    for (std::size_t token = 0; token < piece.tokens.size(); ++token) {
      ids[token] = piece.tokens[token];
      positions[token] = static_cast<std::int64_t>(token);
      segments[token] = segment;
      sequence[token] = piece.number;
      if (token + 1 == piece.tokens.size()) continue;
      counts[token] = piece.counts[token + 1];
      batch_.answer_tokens += counts[token];
      if (counts[token] || prompt_labels_) labels[token] = piece.tokens[token + 1];
    }
  }

  Batch batch_;
  bool prompt_labels_;
};

Batch fill(const PieceRows& rows, const BatchOptions& options) {
  Filling filling(static_cast<std::int64_t>(rows.size()), time_of(rows, options), options.prompt_labels);
  for (std::size_t row = 0; row < rows.size(); ++row) filling.add(static_cast<std::int64_t>(row), rows[row]);
  return filling.take();
}

at::Tensor values_of(const TokenView& file, const std::vector<std::uint32_t>& examples) {
  const auto kind = file.header().kind;
  if (kind != ExampleKind::Preference && kind != ExampleKind::Labelled) return {};
  std::vector<float> values;
  for (const auto example : examples) values.push_back(file.value(example));
  return torch::tensor(values);
}

std::vector<std::uint32_t> examples_of(const ExampleRows& rows) {
  std::vector<std::uint32_t> examples;
  for (const auto& row : rows) examples.insert(examples.end(), row.begin(), row.end());
  return examples;
}

Batch with_examples(Batch batch, const TokenView& file, const ExampleRows& rows) {
  const auto examples = examples_of(rows);
  batch.examples = static_cast<std::int64_t>(examples.size());
  batch.sequences = batch.examples * static_cast<std::int64_t>(file.sequences_of_example());
  batch.values = values_of(file, examples);
  if (file.header().kind == ExampleKind::Labelled) batch.desirable = (batch.values > 0.5).sum().item<std::int64_t>();
  return batch;
}

PieceRows pieces_of(const TokenView& file, const ExampleRows& rows, bool packing) {
  PieceRows result;
  std::int64_t number = 0;
  for (const auto& row : rows) {
    std::vector<Piece> pieces;
    for (const auto example : row) {
      for (std::size_t which = 0; which < file.sequences_of_example(); ++which)
        pieces.push_back(piece_of(file.sequence(example * file.sequences_of_example() + which), number++));
    }
    if (packing) {
      result.push_back(std::move(pieces));
    } else {
      for (auto& piece : pieces) result.push_back({std::move(piece)});
    }
  }
  return result;
}

/// `prompt`'s tokens before the first that counts, then `answer`'s from there on, cut at `longest` if that is not 0.
Piece mismatched(const Piece& prompt, const Piece& answer, std::int64_t longest) {
  const auto begin_of = [](const Piece& piece) {
    return std::find(piece.counts.begin(), piece.counts.end(), true) - piece.counts.begin();
  };
  Piece piece{.tokens = {prompt.tokens.begin(), prompt.tokens.begin() + begin_of(prompt)},
              .counts = std::vector<bool>(static_cast<std::size_t>(begin_of(prompt))),
              .number = prompt.number};
  piece.tokens.insert(piece.tokens.end(), answer.tokens.begin() + begin_of(answer), answer.tokens.end());
  piece.counts.insert(piece.counts.end(), answer.counts.begin() + begin_of(answer), answer.counts.end());
  if (longest > 0 && piece.tokens.size() > static_cast<std::size_t>(longest)) {
    piece.tokens.resize(static_cast<std::size_t>(longest));
    piece.counts.resize(static_cast<std::size_t>(longest));
  }
  return piece;
}

}  // namespace

Batch make_batch(const TokenView& file, const ExampleRows& rows, const BatchOptions& options) {
  return with_examples(fill(pieces_of(file, rows, options.packing), options), file, rows);
}

Batch make_mismatched_batch(const TokenView& file, const ExampleRows& rows, const BatchOptions& options) {
  if (file.header().kind != ExampleKind::Labelled)
    throw std::invalid_argument(file.name() + " holds examples of the kind " + name_of(file.header().kind) +
                                "; KTO needs labelled ones: make it of lines with a label");
  const auto examples = examples_of(rows);
  if (file.examples() < 2) throw std::invalid_argument(file.name() + " has 1 example; KTO's distance needs at least 2");
  PieceRows pieces;
  for (std::size_t at = 0; at < examples.size(); ++at) {
    const auto before = (examples[at] + file.examples() - 1) % file.examples();
    const auto prompt = piece_of(file.sequence(examples[at]), static_cast<std::int64_t>(at));
    pieces.push_back({mismatched(prompt, piece_of(file.sequence(before), 0), options.cut_at)});
  }
  return with_examples(fill(pieces, options), file, rows);
}

Batch empty_batch(const TokenView& file, std::int64_t tokens) {
  Batch batch = fill({{Piece{.tokens = std::vector<std::uint32_t>(static_cast<std::size_t>(tokens)),
                             .counts = std::vector<bool>(static_cast<std::size_t>(tokens)),
                             .number = 0}}},
                     {.pad_to = tokens});
  batch.sequences = static_cast<std::int64_t>(file.sequences_of_example());
  batch.examples = 1;
  const auto kind = file.header().kind;
  if (kind == ExampleKind::Preference || kind == ExampleKind::Labelled) batch.values = torch::zeros({1});
  return batch;
}

Batch to_device(const Batch& batch, const at::Device& device) {
  Batch there = batch;
  there.tokens = to_device(batch.tokens, device);
  for (auto* tensor : {&there.sequence, &there.counts, &there.values}) *tensor = moved(*tensor, device);
  return there;
}

}  // namespace sealift::trainer
