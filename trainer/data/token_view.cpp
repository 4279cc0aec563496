// SPDX-License-Identifier: Apache-2.0
// Reads a token file's bytes strictly.
// See token_view.hpp. The header's counts are bounded by the file's size before any of them is multiplied. A pass over
// the tokens is left to their readers. A file may change while it is read, so what is read is checked each time and not
// once.
#include "trainer/data/token_view.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace sealift::trainer {
namespace {

static_assert(std::endian::native == std::endian::little, "a token file is read as it lies, and is little-endian");

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

class BytesInMemory final : public TokenBytes {
 public:
  explicit BytesInMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t at, std::span<std::byte> into) const override {
    std::memcpy(into.data(), bytes_.data() + at, into.size());
  }

 private:
  std::span<const std::byte> bytes_;
};

/// `count` numbers that begin at `at`.
template <class Number>
std::vector<Number> numbers_at(const TokenBytes& bytes, std::uint64_t at, std::uint64_t count) {
  std::vector<Number> numbers(count);
  bytes.read(at, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

TokenFileHeader read_header(const TokenBytes& all, const std::string& name) {
  expect(all.size() >= TokenFileHeader::kBytes, name, "bytes of a header", TokenFileHeader::kBytes, all.size());
  const auto bytes = numbers_at<std::byte>(all, 0, TokenFileHeader::kBytes);
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

TokenView::TokenView(std::shared_ptr<const TokenBytes> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)), header_(read_header(*bytes_, name_)) {
  check_counts(header_, bytes_->size(), name_);
  values_ = TokenFileHeader::kBytes + (header_.sequences + 1) * 8;
  mask_ = values_ + (has_values(header_.kind) ? to_eight(header_.examples * 4) : 0);
  tokens_ = mask_ + to_eight((header_.tokens + 7) / 8);
  expect(bytes_->size() == tokens_ + header_.tokens * header_.token_bytes, name_, "bytes of the file, by its header",
         tokens_ + header_.tokens * header_.token_bytes, bytes_->size());
  check_table();
}

TokenView::TokenView(std::span<const std::byte> bytes, std::string name)
    : TokenView(std::make_shared<BytesInMemory>(bytes), std::move(name)) {}

void TokenView::check_table() const {
  constexpr std::uint64_t kAtOnce = 1 << 16;
  std::uint64_t before = 0;
  for (std::uint64_t first = 0; first <= header_.sequences; first += kAtOnce) {
    const auto count = std::min(kAtOnce, header_.sequences + 1 - first);
    const auto begins = numbers_at<std::uint64_t>(*bytes_, TokenFileHeader::kBytes + first * 8, count);
    if (first == 0) expect(begins[0] == 0, name_, "the first sequence's begin", 0, begins[0]);
    for (std::uint64_t at = first == 0 ? 1 : 0; at < count; before = begins[at++])
      expect(before < begins[at], name_, ("the begin of sequence " + std::to_string(first + at) + ", above").c_str(),
             before, begins[at]);
  }
  expect(before == header_.tokens, name_, "the last sequence's end", header_.tokens, before);
}

std::pair<std::uint64_t, std::uint64_t> TokenView::ends_of(std::uint64_t index) const {
  if (index >= header_.sequences)
    throw std::invalid_argument(name_ + " has " + std::to_string(header_.sequences) + " sequences; asked for number " +
                                std::to_string(index));
  const auto ends = numbers_at<std::uint64_t>(*bytes_, TokenFileHeader::kBytes + index * 8, 2);
  if (ends[0] >= ends[1] || ends[1] > header_.tokens) refuse(name_, "it was changed while it was read");
  return {ends[0], ends[1]};
}

std::uint64_t TokenView::length(std::uint64_t index) const {
  const auto [begin, end] = ends_of(index);
  return end - begin;
}

std::uint64_t TokenView::example_length(std::uint64_t example) const {
  if (sequences_of_example() == 1) return length(example);
  return length(2 * example) + length(2 * example + 1);
}

TokenSequence TokenView::sequence(std::uint64_t index) const {
  const auto [begin, end] = ends_of(index);
  TokenSequence found;
  const auto at = tokens_ + begin * header_.token_bytes;
  if (header_.token_bytes == 2) {
    const auto narrow = numbers_at<std::uint16_t>(*bytes_, at, end - begin);
    found.tokens_.assign(narrow.begin(), narrow.end());
  } else {
    found.tokens_ = numbers_at<std::uint32_t>(*bytes_, at, end - begin);
  }
  for (std::size_t token = 0; token < found.size(); ++token)
    expect(found.token(token) < header_.vocabulary, name_,
           ("token " + std::to_string(token) + " of sequence " + std::to_string(index) + ", below").c_str(),
           header_.vocabulary, found.token(token));
  const auto mask = numbers_at<std::uint8_t>(*bytes_, mask_ + begin / 8, (end + 7) / 8 - begin / 8);
  for (auto bit = begin; bit < end; ++bit) found.counts_.push_back((mask[bit / 8 - begin / 8] >> (bit % 8) & 1) != 0);
  return found;
}

float TokenView::value(std::uint64_t example) const {
  if (!has_values(header_.kind) || example >= header_.examples)
    throw std::invalid_argument(name_ + " has no value of example " + std::to_string(example) + ": it is of " +
                                name_of(header_.kind) + " with " + std::to_string(header_.examples) + " examples");
  const auto value = numbers_at<float>(*bytes_, values_ + example * 4, 1).front();
  const bool good = header_.kind == ExampleKind::Labelled ? value == 0 || value == 1 : std::isfinite(value);
  if (!good)
    refuse(name_, "the value of example " + std::to_string(example) + " is " + std::to_string(value) + ", expected " +
                      (header_.kind == ExampleKind::Labelled ? "0 or 1" : "a finite number"));
  return value;
}

}  // namespace sealift::trainer
