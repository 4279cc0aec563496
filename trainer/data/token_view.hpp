// SPDX-License-Identifier: Apache-2.0
// A token file's bytes: what a model is trained on, as numbers that are read when they are asked for.
// Written by `sealift-train tokenize` (write_token_file.py); read by sampler and batches. Format: docs/token_files.md.
// Sizes all follow from a fixed header, so one comparison with the file's size bounds everything that is read later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sealift::trainer {

/// What the examples of a file are; the number is the file's.
enum class ExampleKind : std::uint32_t {
  Text = 0,        ///< documents; every token counts
  Chat = 1,        ///< prompts with answers; the answers' tokens count
  Preference = 2,  ///< two sequences each: prompt with the chosen answer, prompt with the rejected one
  Labelled = 3     ///< a prompt with an answer that is good or bad, for KTO
};

/// "text", "chat", "preference", "labelled".
std::string name_of(ExampleKind kind);

struct TokenFileHeader {
  static constexpr std::size_t kBytes = 160;

  ExampleKind kind = ExampleKind::Text;
  std::uint32_t token_bytes = 2;  ///< 2 or 4
  std::uint64_t vocabulary = 0;   ///< every token is below it
  std::uint64_t examples = 0, sequences = 0, tokens = 0;
  std::string tokenizer_sha256;  ///< of tokenizer.json, 64 hexadecimal digits
  std::string template_sha256;   ///< of the chat template's text; zeros: none was used
  std::string content_sha256;    ///< of all of the file but these 32 bytes
};

/// The tokens of one sequence.
class TokenSequence {
 public:
  std::size_t size() const { return tokens_.size(); }
  /// Below the file's vocabulary.
  std::uint32_t token(std::size_t at) const { return tokens_[at]; }
  /// Whether the model is to learn to say this token: it is the answer's.
  bool counts(std::size_t at) const { return counts_[at]; }

 private:
  friend class TokenView;
  std::vector<std::uint32_t> tokens_;
  std::vector<bool> counts_;
};

/// Where a token file's bytes are: in memory, or in a file.
class TokenBytes {
 public:
  virtual ~TokenBytes() = default;
  virtual std::uint64_t size() const = 0;
  /// Fills `into` with what begins at `at`, all within size(). Throws where the bytes are no longer there.
  virtual void read(std::uint64_t at, std::span<std::byte> into) const = 0;
};

/// A token file's bytes, read strictly. Throws std::invalid_argument that names the file, the place, what was expected
/// and what was found.
class TokenView {
 public:
  /// Checks the header, the file's size against it, and the table of sequences; not the tokens, which are checked as
  /// they are read, nor the digest.
  TokenView(std::shared_ptr<const TokenBytes> bytes, std::string name);
  /// The same of bytes in memory, which must outlive the view.
  TokenView(std::span<const std::byte> bytes, std::string name);

  const TokenFileHeader& header() const { return header_; }
  const std::string& name() const { return name_; }
  std::size_t examples() const { return header_.examples; }
  /// Of an example: 2 of a preference, 1 of the others.
  std::size_t sequences_of_example() const { return header_.kind == ExampleKind::Preference ? 2 : 1; }

  /// Tokens of sequence `index`, at least 1, without a look at them.
  std::uint64_t length(std::uint64_t index) const;
  /// Tokens of all of an example's sequences.
  std::uint64_t example_length(std::uint64_t example) const;
  /// A token that is not below the vocabulary: an error.
  TokenSequence sequence(std::uint64_t index) const;

  /// Of a preference: by how much the chosen answer is better, finite; 0 where nobody said. Of a labelled answer: 1 for
  /// a good one, 0 for a bad one. Only for these kinds.
  float value(std::uint64_t example) const;

 private:
  /// Where sequence `index` begins and ends, in tokens; throws unless that is a sequence of this file.
  std::pair<std::uint64_t, std::uint64_t> ends_of(std::uint64_t index) const;
  void check_table() const;

  std::shared_ptr<const TokenBytes> bytes_;
  std::string name_;
  TokenFileHeader header_;
  std::uint64_t values_ = 0, mask_ = 0, tokens_ = 0;  ///< where these begin
};

}  // namespace sealift::trainer
