// SPDX-License-Identifier: Apache-2.0
// Reads a token file's bytes strictly.
// See token_view.hpp. The header's counts are bounded by the file's size before any of them is multiplied.
// What costs a pass over the tokens is left to those who read them.
#include "data/token_view.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace sealift::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "a token file is read where it lies, and is little-endian");

constexpr char kMagic[] = {'S', 'L', 'T', 'O', 'K', 'E', 'N', 'S'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMostVocabulary = std::uint64_t{1} << 31;

template <class Number>
Number number_at(const std::byte* place) {
  Number number;
  std::memcpy(&number, place, sizeof number);
  return number;
}

std::uint64_t to_eight(std::uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

std::string hex_of(const std::byte* digest) {
  std::string text;
  for (int at = 0; at < 32; ++at) {
    text += "0123456789abcdef"[std::to_integer<int>(digest[at]) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(digest[at]) & 15];
  }
  return text;
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw std::invalid_argument("the token file " + name + " cannot be used: " + what +
                              "; make it again with `sealift-train tokenize`, or carry it again");
}

void expect(bool holds, const std::string& name, const char* what, std::uint64_t expected, std::uint64_t got) {
  if (!holds)
    refuse(name, std::string(what) + ": expected " + std::to_string(expected) + ", got " + std::to_string(got));
}

bool has_values(ExampleKind kind) {
  return kind == ExampleKind::Preference || kind == ExampleKind::Labelled;
}

TokenFileHeader read_header(std::span<const std::byte> bytes, const std::string& name) {
  expect(bytes.size() >= TokenFileHeader::kBytes, name, "bytes of a header", TokenFileHeader::kBytes, bytes.size());
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) refuse(name, "it does not begin with SLTOKENS");
  const auto small = [&](std::size_t at) { return number_at<std::uint32_t>(bytes.data() + at); };
  const auto large = [&](std::size_t at) { return number_at<std::uint64_t>(bytes.data() + at); };
  expect(small(8) == kVersion, name, "the format's version at byte 8", kVersion, small(8));
  expect(small(12) <= 3, name, "the kind of examples at byte 12, at most", 3, small(12));
  expect(small(16) == 2 || small(16) == 4, name, "bytes of a token at byte 16, 2 or", 4, small(16));
  expect(small(20) == 0, name, "the reserved bytes 20 to 23", 0, small(20));
  expect(large(56) == 0, name, "the reserved bytes 56 to 63", 0, large(56));
  return {.kind = static_cast<ExampleKind>(small(12)),
          .token_bytes = small(16),
          .vocabulary = large(24),
          .examples = large(32),
          .sequences = large(40),
          .tokens = large(48),
          .tokenizer_sha256 = hex_of(bytes.data() + 64),
          .template_sha256 = hex_of(bytes.data() + 96),
          .content_sha256 = hex_of(bytes.data() + 128)};
}

/// That no product of these numbers can overflow, and that they fit each other.
void check_counts(const TokenFileHeader& header, std::uint64_t file_bytes, const std::string& name) {
  const auto most = header.token_bytes == 2 ? std::uint64_t{1} << 16 : kMostVocabulary;
  expect(header.vocabulary >= 1 && header.vocabulary <= most, name, "the vocabulary at byte 24, at least 1 and at most",
         most, header.vocabulary);
  expect(header.tokens <= file_bytes / header.token_bytes, name, "tokens at byte 48, for the file's size at most",
         file_bytes / header.token_bytes, header.tokens);
  expect(header.sequences <= header.tokens, name, "sequences at byte 40, each of a token at least, at most",
         header.tokens, header.sequences);
  expect(header.sequences <= file_bytes / 8, name, "sequences at byte 40, for the file's size at most", file_bytes / 8,
         header.sequences);
  expect(header.examples >= 1, name, "examples at byte 32, at least", 1, header.examples);
  expect(header.examples < std::numeric_limits<std::uint32_t>::max(), name, "examples at byte 32, below",
         std::numeric_limits<std::uint32_t>::max(), header.examples);
  const auto each = header.kind == ExampleKind::Preference ? 2 : 1;
  expect(header.sequences == header.examples * each, name, "sequences at byte 40", header.examples * each,
         header.sequences);
}

}  // namespace

std::string name_of(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::Text:
      return "text";
    case ExampleKind::Chat:
      return "chat";
    case ExampleKind::Preference:
      return "preference";
    case ExampleKind::Labelled:
      return "labelled";
  }
  return "unknown";
}

std::uint32_t TokenSequence::token(std::size_t at) const {
  const auto* place = tokens_ + at * token_bytes_;
  return token_bytes_ == 2 ? number_at<std::uint16_t>(place) : number_at<std::uint32_t>(place);
}

bool TokenSequence::counts(std::size_t at) const {
  const auto bit = first_ + at;
  return (std::to_integer<unsigned>(mask_[bit / 8]) >> (bit % 8) & 1) != 0;
}

TokenView::TokenView(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)), header_(read_header(bytes, name_)) {
  check_counts(header_, bytes.size(), name_);
  values_ = TokenFileHeader::kBytes + (header_.sequences + 1) * 8;
  mask_ = values_ + (has_values(header_.kind) ? to_eight(header_.examples * 4) : 0);
  tokens_ = mask_ + to_eight((header_.tokens + 7) / 8);
  expect(bytes.size() == tokens_ + header_.tokens * header_.token_bytes, name_, "bytes of the file, by its header",
         tokens_ + header_.tokens * header_.token_bytes, bytes.size());
  expect(begin_of(0) == 0, name_, "the first sequence's begin", 0, begin_of(0));
  for (std::uint64_t index = 0; index < header_.sequences; ++index)
    expect(begin_of(index) < begin_of(index + 1), name_,
           ("the begin of sequence " + std::to_string(index + 1) + ", above").c_str(), begin_of(index),
           begin_of(index + 1));
  expect(begin_of(header_.sequences) == header_.tokens, name_, "the last sequence's end", header_.tokens,
         begin_of(header_.sequences));
}

std::uint64_t TokenView::begin_of(std::uint64_t index) const {
  return number_at<std::uint64_t>(bytes_.data() + TokenFileHeader::kBytes + index * 8);
}

std::uint64_t TokenView::length(std::uint64_t index) const {
  if (index >= header_.sequences)
    throw std::invalid_argument(name_ + " has " + std::to_string(header_.sequences) + " sequences; asked for number " +
                                std::to_string(index));
  return begin_of(index + 1) - begin_of(index);
}

std::uint64_t TokenView::example_length(std::uint64_t example) const {
  if (sequences_of_example() == 1) return length(example);
  return length(2 * example) + length(2 * example + 1);
}

TokenSequence TokenView::sequence(std::uint64_t index) const {
  TokenSequence found;
  found.size_ = length(index);
  found.first_ = begin_of(index);
  found.token_bytes_ = header_.token_bytes;
  found.tokens_ = bytes_.data() + tokens_ + found.first_ * header_.token_bytes;
  found.mask_ = bytes_.data() + mask_;
  for (std::size_t at = 0; at < found.size_; ++at)
    expect(found.token(at) < header_.vocabulary, name_,
           ("token " + std::to_string(at) + " of sequence " + std::to_string(index) + ", below").c_str(),
           header_.vocabulary, found.token(at));
  return found;
}

float TokenView::value(std::uint64_t example) const {
  if (!has_values(header_.kind) || example >= header_.examples)
    throw std::invalid_argument(name_ + " has no value of example " + std::to_string(example) + ": it is of " +
                                name_of(header_.kind) + " with " + std::to_string(header_.examples) + " examples");
  const auto value = number_at<float>(bytes_.data() + values_ + example * 4);
  const bool good = header_.kind == ExampleKind::Labelled ? value == 0 || value == 1 : std::isfinite(value);
  if (!good)
    refuse(name_, "the value of example " + std::to_string(example) + " is " + std::to_string(value) + ", expected " +
                      (header_.kind == ExampleKind::Labelled ? "0 or 1" : "a finite number"));
  return value;
}

}  // namespace sealift::trainer
