// SPDX-License-Identifier: Apache-2.0
// The reader of token files: what it reads, and each way in which a file may lie.
#include "trainer/data/token_view.hpp"

#include "tests/train/data/made_token_file.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

std::vector<std::uint32_t> tokens_of(const TokenSequence& sequence) {
  std::vector<std::uint32_t> tokens;
  for (std::size_t at = 0; at < sequence.size(); ++at) tokens.push_back(sequence.token(at));
  return tokens;
}

std::vector<bool> counts_of(const TokenSequence& sequence) {
  std::vector<bool> counts;
  for (std::size_t at = 0; at < sequence.size(); ++at) counts.push_back(sequence.counts(at));
  return counts;
}

/// The reason why `bytes` are refused; empty where they are read.
std::string refusal(const std::string& bytes) {
  try {
    const TokenView view(as_bytes(bytes), "made.tokens");
    for (std::uint64_t index = 0; index < view.header().sequences; ++index) view.sequence(index);
    if (view.header().kind >= ExampleKind::Preference)
      for (std::size_t example = 0; example < view.examples(); ++example) view.value(example);
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

void check_refused(const std::string& bytes, const char* reason) {
  CAPTURE(reason);
  CHECK_MESSAGE(refusal(bytes).find(reason) != std::string::npos, refusal(bytes));
}

constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();

}  // namespace

TEST_CASE("a token file is read as it was written, with two bytes a token and with four") {
  for (const auto& made : {made_chats(), made_preferences()}) {
    const auto bytes = made.bytes();
    const TokenView view(as_bytes(bytes), "made");
    REQUIRE(view.header().sequences == made.sequences.size());
    for (std::size_t index = 0; index < made.sequences.size(); ++index) {
      CHECK(tokens_of(view.sequence(index)) == made.sequences[index]);
      CHECK(counts_of(view.sequence(index)) == made.counts[index]);
    }
  }
}

TEST_CASE("an example of a preference is two sequences and a margin") {
  const auto bytes = made_preferences().bytes();
  const TokenView view(as_bytes(bytes), "made");
  CHECK(view.examples() == 2);
  CHECK(view.example_length(0) == 5);
  CHECK(view.example_length(1) == 6);
  CHECK(view.value(0) == 0.5F);
  CHECK(view.value(1) == -1.0F);
}

TEST_CASE("a token file that was cut anywhere is refused") {
  for (const auto& bytes : {made_chats().bytes(), made_preferences().bytes()}) {
    for (std::size_t size = 0; size < bytes.size(); ++size) CHECK(!refusal(bytes.substr(0, size)).empty());
    check_refused(bytes + '\0', "bytes of the file, by its header");
  }
}

TEST_CASE("a header that says what cannot be is refused with the place and the number") {
  const auto good = made_chats().bytes();
  REQUIRE(refusal(good).empty());
  check_refused(patched(good, 0, 'X'), "SLTOKENS");
  check_refused(patched(good, 8, 2U), "version at byte 8: expected 1, got 2");
  check_refused(patched(good, 12, 4U), "kind of examples");
  check_refused(patched(good, 16, 3U), "bytes of a token");
  check_refused(patched(good, 20, 1U), "reserved bytes 20");
  check_refused(patched(good, 56, std::uint64_t{1}), "reserved bytes 56");
  check_refused(patched(good, 24, std::uint64_t{0}), "vocabulary");
  check_refused(patched(good, 24, std::uint64_t{65537}), "vocabulary");
  check_refused(patched(made_preferences().bytes(), 24, kHuge), "vocabulary");
}

TEST_CASE("counts that overflow a product or exceed the file are refused before anything is read by them") {
  const auto good = made_chats().bytes();
  for (const auto number : {kHuge, kHuge / 2, kHuge / 8 + 2, std::uint64_t{1} << 61, std::uint64_t{1} << 32}) {
    check_refused(patched(good, 48, number), "tokens at byte 48");
    check_refused(patched(good, 40, number), "sequences at byte 40");
    CHECK(!refusal(patched(good, 32, number)).empty());
    CHECK(!refusal(patched(patched(good, 32, number), 40, number)).empty());
  }
  CHECK(!refusal(patched(patched(good, 32, std::uint64_t{0}), 40, std::uint64_t{0})).empty());
  check_refused(patched(made_preferences().bytes(), 32, std::uint64_t{4}), "sequences at byte 40: expected 8");
}

TEST_CASE("sequences that are empty, out of order or end elsewhere are refused") {
  const auto good = made_chats().bytes();
  const std::size_t table = TokenFileHeader::kBytes;
  check_refused(patched(good, table, std::uint64_t{1}), "the first sequence's begin");
  check_refused(patched(good, table + 8, std::uint64_t{0}), "the begin of sequence 1");
  check_refused(patched(good, table + 8, std::uint64_t{12}), "the begin of sequence 2");
  check_refused(patched(good, table + 16, kHuge), "the begin of sequence 3");
  check_refused(patched(good, table + 24, kHuge), "the last sequence's end");
}

TEST_CASE("a token outside of the vocabulary is refused where it is read, and not before") {
  const auto good = made_chats().bytes();
  const auto bad = patched(good, good.size() - 2, std::uint16_t{100});
  check_refused(bad, "token 0 of sequence 2, below: expected 100, got 100");
  const TokenView view(as_bytes(bad), "made");
  CHECK(tokens_of(view.sequence(0)) == std::vector<std::uint32_t>{1, 2, 3});
}

TEST_CASE("a margin that is no number and a label that is neither 0 nor 1 are refused") {
  auto made = made_preferences();
  made.values[1] = std::numeric_limits<float>::quiet_NaN();
  check_refused(made.bytes(), "expected a finite number");
  MadeTokenFile labelled{.kind = 3, .sequences = {{1, 2}}, .counts = {{false, true}}, .values = {0.5F}};
  check_refused(labelled.bytes(), "expected 0 or 1");
  labelled.values[0] = 1;
  CHECK(refusal(labelled.bytes()).empty());
}

TEST_CASE("what a file does not have is refused by number") {
  const auto bytes = made_chats().bytes();
  const TokenView view(as_bytes(bytes), "made");
  CHECK_THROWS_AS(view.sequence(3), std::invalid_argument);
  CHECK_THROWS_AS(view.length(kHuge), std::invalid_argument);
  CHECK_THROWS_AS(view.value(0), std::invalid_argument);
}
