// SPDX-License-Identifier: Apache-2.0
// The memory of label log-probabilities: never [tokens, vocabulary], forward or backward.
// In the program that counts what LibTorch's allocator hands out.
// Beside the gradients, once more where forward made them, it may hold the logits of a piece and what is made of them.
#include "tests/support/counting_allocator.hpp"
#include "trainer/models/label_log_probabilities.hpp"

#include <doctest/doctest.h>

using sealift::test::CountingAllocator;
using namespace sealift::trainer;

TEST_CASE("label log-probabilities hold a few tokens' logits, and nothing of the size of all") {
  CountingAllocator::install();
  constexpr std::int64_t kTokens = 2048, kVocabulary = 20'000, kWidth = 16, kAtATime = 1 << 20;
  const auto hidden = torch::randn({kTokens, kWidth}).requires_grad_();
  const auto weight = torch::randn({kVocabulary, kWidth}).requires_grad_();
  const auto labels = torch::randint(0, kVocabulary, {kTokens}, at::kLong);
  auto& count = CountingAllocator::all;
  for (const bool equal : {true, false}) {
    const auto weights = equal ? c10::make_intrusive<TokenWeights>() : c10::intrusive_ptr<TokenWeights>();
    hidden.mutable_grad() = weight.mutable_grad() = at::Tensor();
    const auto before = count.live.load();
    count.peak = before;
    label_log_probabilities(hidden, weight, labels, kAtATime, weights).sum().backward();
    const auto gradients = (hidden.numel() + weight.numel()) * 4;
    const auto held = count.peak - before;
    MESSAGE("held ", held >> 10, " KiB; all logits are ", kTokens * kVocabulary * 4 >> 10, " KiB");
    CHECK(held < 2 * gradients + 2 * kAtATime * 4 + (std::int64_t{1} << 20));
    CHECK(held < kTokens * kVocabulary * 4 / 8);
  }
}
