// SPDX-License-Identifier: Apache-2.0
// Batches: what of a token file stands where, packed and padded.
#include "trainer/data/batch.hpp"

#include "tests/train/data/made_token_file.hpp"

#include <doctest/doctest.h>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

using Rows = std::vector<std::vector<std::int64_t>>;

Rows rows_of(const at::Tensor& tensor) {
  Rows rows;
  const auto values = tensor.to(torch::kInt64).contiguous();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    const auto* begin = values.const_data_ptr<std::int64_t>() + row * values.size(1);
    rows.emplace_back(begin, begin + values.size(1));
  }
  return rows;
}

constexpr std::int64_t kNo = kNoLabel;

}  // namespace

TEST_CASE("packed sequences have segments and positions of their own, and no label crosses from one to the next") {
  const auto bytes = made_chats().bytes();
  const TokenView file(as_bytes(bytes), "made");
  const auto batch = make_batch(file, {{2, 0}, {1}}, {.pad_to = 10});
  CHECK(rows_of(batch.tokens.ids) == Rows{{99, 1, 2, 3, 0, 0, 0, 0, 0, 0}, {4, 5, 6, 7, 8, 9, 10, 11, 12, 0}});
  CHECK(rows_of(batch.tokens.positions) == Rows{{0, 0, 1, 2, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 0}});
  CHECK(rows_of(batch.tokens.segments) == Rows{{0, 1, 1, 1, -1, -1, -1, -1, -1, -1}, {0, 0, 0, 0, 0, 0, 0, 0, 0, -1}});
  CHECK(rows_of(batch.sequence) == Rows{{0, 1, 1, 1, -1, -1, -1, -1, -1, -1}, {2, 2, 2, 2, 2, 2, 2, 2, 2, -1}});
  CHECK(rows_of(batch.tokens.labels) ==
        Rows{{kNo, kNo, 3, kNo, kNo, kNo, kNo, kNo, kNo, kNo}, {kNo, kNo, 7, 8, kNo, kNo, 11, 12, kNo, kNo}});
  CHECK(torch::equal(batch.counts, batch.tokens.labels != kNoLabel));
  CHECK(batch.answer_tokens == 5);
  CHECK(batch.sequences == 3);
}

TEST_CASE("labels of prompts are there where they are asked for, and still do not count as the answer's") {
  const auto bytes = made_chats().bytes();
  const TokenView file(as_bytes(bytes), "made");
  const auto batch = make_batch(file, {{0}}, {.pad_to = 3, .prompt_labels = true});
  CHECK(rows_of(batch.tokens.labels) == Rows{{2, 3, kNo}});
  CHECK(rows_of(batch.counts) == Rows{{0, 1, 0}});
  CHECK(batch.answer_tokens == 1);
}

TEST_CASE("a pair is numbered chosen first, in one row when packed and in two when not") {
  const auto bytes = made_preferences().bytes();
  const TokenView file(as_bytes(bytes), "made");
  const auto packed = make_batch(file, {{1, 0}}, {.multiple = 1});
  CHECK(rows_of(packed.tokens.ids) == Rows{{5, 6, 7, 8, 5, 69999, 1, 2, 1, 3, 4}});
  CHECK(rows_of(packed.sequence) == Rows{{0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 3}});
  CHECK(packed.values.equal(torch::tensor({-1.0F, 0.5F})));
  const auto padded = make_batch(file, {{1}, {0}}, {.multiple = 4, .packing = false});
  CHECK(rows_of(padded.tokens.ids) == Rows{{5, 6, 7, 8}, {5, 69999, 0, 0}, {1, 2, 0, 0}, {1, 3, 4, 0}});
  CHECK(rows_of(padded.sequence) == Rows{{0, 0, 0, 0}, {1, 1, -1, -1}, {2, 2, -1, -1}, {3, 3, 3, -1}});
  CHECK(padded.examples == 2);
}

TEST_CASE("a mismatched answer is the one of the example before, and the first gets the last's") {
  const MadeTokenFile made{.kind = 3,
                           .sequences = {{1, 2, 3}, {4, 5, 6, 7}, {8, 9}},
                           .counts = {{false, false, true}, {false, true, false, true}, {false, true}},
                           .values = {1, 0, 1}};
  const auto bytes = made.bytes();
  const TokenView file(as_bytes(bytes), "made");
  const auto batch = make_mismatched_batch(file, {{0}, {1}, {2}}, {.multiple = 1});
  CHECK(rows_of(batch.tokens.ids) == Rows{{1, 2, 9, 0}, {4, 3, 0, 0}, {8, 5, 6, 7}});
  CHECK(rows_of(batch.counts) == Rows{{0, 1, 0, 0}, {1, 0, 0, 0}, {1, 0, 1, 0}});
  CHECK(rows_of(batch.sequence) == Rows{{0, 0, 0, -1}, {1, 1, -1, -1}, {2, 2, 2, 2}});
  CHECK(make_mismatched_batch(file, {{0}, {1}, {2}}, {.multiple = 1, .cut_at = 3}).tokens.ids.size(1) == 3);
  // Whatever else is in the batch.
  CHECK(rows_of(make_mismatched_batch(file, {{2, 1}}, {.multiple = 1}).tokens.ids) == Rows{{8, 5, 6, 7}, {4, 3, 0, 0}});
  const auto one = MadeTokenFile{.kind = 3, .sequences = {{1, 2}}, .counts = {{false, true}}, .values = {1}}.bytes();
  const TokenView lonely(as_bytes(one), "made");
  CHECK_THROWS_WITH_AS(make_mismatched_batch(lonely, {{0}}), doctest::Contains("at least 2"), std::invalid_argument);
}

TEST_CASE("a row that is longer than asked for is refused, and a batch for nobody counts for nothing") {
  const auto bytes = made_chats().bytes();
  const TokenView file(as_bytes(bytes), "made");
  CHECK_THROWS_WITH_AS(make_batch(file, {{1}}, {.pad_to = 8}), doctest::Contains("9 tokens"), std::invalid_argument);
  const auto empty = empty_batch(file, 16);
  CHECK(empty.answer_tokens == 0);
  CHECK((empty.tokens.labels == kNoLabel).all().item<bool>());
  CHECK(empty.tokens.ids.sizes() == at::IntArrayRef({1, 16}));
}
