// SPDX-License-Identifier: Apache-2.0
// Packing and the sampler, on configurations drawn from a seed: every example once an epoch, however ranks share it.
#include "trainer/data/sampler.hpp"
#include "trainer/data/shuffle.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

using namespace sealift::trainer;

namespace {

struct Drawn {
  std::uint64_t examples;
  std::vector<std::uint64_t> lengths;
  SamplerOptions options;
  std::int64_t world;

  Sampler sampler(std::int64_t rank) const { return sampler(rank, world, options); }
  Sampler sampler(std::int64_t rank, std::int64_t ranks, const SamplerOptions& with) const {
    return {examples, [this](std::uint64_t example) { return lengths.at(example); }, "digest", with, rank, ranks};
  }
};

/// World, micro-batches, packing, drop_last and data by `seed`.
Drawn draw(std::uint64_t seed) {
  Draw draw(seed);
  Drawn drawn{.examples = 1 + draw.below(150), .lengths = {}, .options = {}, .world = 1 + std::int64_t(draw.below(5))};
  drawn.options.seed = draw.next();
  drawn.options.shuffle = draw.below(4) != 0;
  drawn.options.packing = draw.below(2) == 0;
  drawn.options.row_length = 40 + draw.below(100);
  for (std::uint64_t example = 0; example < drawn.examples; ++example)
    drawn.lengths.push_back(1 + draw.below(draw.below(4) == 0 ? drawn.options.row_length : 20));
  drawn.options.micro_rows = 1 + std::int64_t(draw.below(3));
  drawn.options.global_rows = drawn.world * drawn.options.micro_rows * (1 + std::int64_t(draw.below(3)));
  return drawn;
}

using Step = std::vector<std::vector<std::uint32_t>>;

/// The next step's rows of all ranks in the order of the plan.
Step together(std::vector<Sampler>& ranks) {
  std::map<std::int64_t, Step> by_micro_batch;
  std::int64_t rows = 0, world = std::int64_t(ranks.size());
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const auto step = ranks[std::size_t(rank)].next();
    rows = step.rows;
    CHECK(std::int64_t(step.micro_batches.size()) <= step.most_micro_batches);
    for (std::size_t micro = 0; micro < step.micro_batches.size(); ++micro)
      by_micro_batch[std::int64_t(micro) * world + rank] = step.micro_batches[micro];
  }
  Step result;
  for (const auto& [number, part] : by_micro_batch) result.insert(result.end(), part.begin(), part.end());
  CHECK(std::int64_t(result.size()) == rows);
  return result;
}

std::vector<Sampler> all_ranks(const Drawn& drawn) {
  std::vector<Sampler> ranks;
  for (std::int64_t rank = 0; rank < drawn.world; ++rank) ranks.push_back(drawn.sampler(rank));
  return ranks;
}

std::vector<Step> steps_of(std::vector<Sampler>& ranks, std::int64_t count) {
  std::vector<Step> steps;
  for (std::int64_t step = 0; step < count; ++step) steps.push_back(together(ranks));
  return steps;
}

constexpr std::uint64_t kSeeds = 300;

}  // namespace

TEST_CASE("every example comes exactly once an epoch, however it is packed and shared") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    const auto drawn = draw(seed);
    auto ranks = all_ranks(drawn);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::uint32_t> seen;
      for (const auto& step : steps_of(ranks, ranks[0].steps(epoch)))
        for (const auto& row : step) seen.insert(seen.end(), row.begin(), row.end());
      std::sort(seen.begin(), seen.end());
      std::vector<std::uint32_t> all(drawn.examples);
      std::iota(all.begin(), all.end(), 0U);
      REQUIRE(seen == all);
    }
  }
}

TEST_CASE("a run that is resumed anywhere on any number of ranks gets the steps that would have come") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    auto drawn = draw(seed);
    auto ranks = all_ranks(drawn);
    Draw more(seed + kSeeds);
    steps_of(ranks, std::int64_t(more.below(12)));
    const auto saved = ranks[0].state().text();
    const auto expected = steps_of(ranks, 5);

    // As many rows a step, by other micro-batches on other ranks.
    const auto rows = drawn.options.global_rows;
    do drawn.world = 1 + std::int64_t(more.below(std::uint64_t(rows)));
    while (rows % drawn.world != 0);
    const auto each = rows / drawn.world;
    do drawn.options.micro_rows = 1 + std::int64_t(more.below(std::uint64_t(each)));
    while (each % drawn.options.micro_rows != 0);
    auto others = all_ranks(drawn);
    for (auto& rank : others) rank.resume(SamplerState::parse(saved));
    REQUIRE(steps_of(others, 5) == expected);
  }
}

TEST_CASE("drop_last leaves out less than a step, and makes all ranks' steps equal") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    CAPTURE(seed);
    auto drawn = draw(seed);
    drawn.options.drop_last = true;
    auto whole = drawn;
    whole.options.drop_last = false;
    const auto rows = whole.sampler(0).rows(0);
    if (rows < drawn.options.global_rows) {
      CHECK_THROWS_WITH_AS(drawn.sampler(0), doctest::Contains("use fewer rows"), std::invalid_argument);
      continue;
    }
    auto ranks = all_ranks(drawn);
    CHECK(ranks[0].steps(0) == rows / drawn.options.global_rows);
    for (const auto& step : steps_of(ranks, ranks[0].steps(0)))
      REQUIRE(std::int64_t(step.size()) == drawn.options.global_rows);
  }
}

TEST_CASE("a packed row is never longer than it may be, and little of it is empty") {
  std::uint64_t used = 0, room = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Draw draw(seed);
    std::vector<std::uint32_t> order(500);
    std::iota(order.begin(), order.end(), 0U);
    std::vector<std::uint64_t> lengths;
    for (std::size_t at = 0; at < order.size(); ++at) lengths.push_back(1 + draw.below(200));
    const auto rows = pack(order, lengths, 256);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::uint64_t length = 0;
      for (const auto example : rows[row]) length += lengths[example];
      REQUIRE(length <= 256);
      used += length;
      room += 256;
    }
  }
  CHECK(double(used) / double(room) > 0.93);
}

TEST_CASE("an example goes into the row where the least room is left") {
  const std::vector<std::uint32_t> order = {0, 1, 2, 3, 4};
  const std::vector<std::uint64_t> lengths = {6, 7, 3, 4, 10};
  const auto rows = pack(order, lengths, 10);
  REQUIRE(rows.size() == 3);
  CHECK(std::vector<std::uint32_t>(rows[0].begin(), rows[0].end()) == std::vector<std::uint32_t>{0, 3});
  CHECK(std::vector<std::uint32_t>(rows[1].begin(), rows[1].end()) == std::vector<std::uint32_t>{1, 2});
  CHECK(std::vector<std::uint32_t>(rows[2].begin(), rows[2].end()) == std::vector<std::uint32_t>{4});
}

TEST_CASE("an example that is longer than a row is refused by its number") {
  const std::vector<std::uint32_t> order = {7};
  const std::vector<std::uint64_t> lengths = {11};
  CHECK_THROWS_WITH_AS(pack(order, lengths, 10), doctest::Contains("example 7 has 11 tokens"), std::invalid_argument);
}

TEST_CASE("epochs and seeds have orders of their own, and the order of one seed never changes") {
  Drawn drawn{.examples = 50, .lengths = std::vector<std::uint64_t>(50, 1), .options = {}, .world = 1};
  drawn.options.global_rows = 50;
  auto ranks = all_ranks(drawn);
  const auto steps = steps_of(ranks, 2);
  CHECK(steps[0] != steps[1]);
  drawn.options.seed = 2;
  auto others = all_ranks(drawn);
  CHECK(together(others) != steps[0]);
  // What a checkpoint of last year counts on.
  Draw pinned(1);
  CHECK(pinned.next() == 0x910a2dec89025cc1);
  std::vector<int> values = {0, 1, 2, 3, 4, 5, 6, 7};
  shuffle(values, 1);
  CHECK(values == std::vector<int>{0, 3, 7, 1, 2, 6, 5, 4});
}

TEST_CASE("a checkpoint of other data, another seed or another packing is refused") {
  const auto drawn = draw(3);
  const auto state = drawn.sampler(0).state();
  auto other = drawn.options;
  other.shuffle = !other.shuffle;
  CHECK_THROWS_AS(drawn.sampler(0, drawn.world, other).resume(state), std::invalid_argument);
  other = drawn.options;
  other.seed += 1;
  CHECK_THROWS_WITH_AS(drawn.sampler(0, drawn.world, other).resume(state), doctest::Contains("seed"),
                       std::invalid_argument);
  auto far = state;
  far.row = 1000000;
  CHECK_THROWS_WITH_AS(drawn.sampler(0).resume(far), doctest::Contains("does not exist"), std::invalid_argument);
}

TEST_CASE("a saved state that was changed is refused") {
  const auto text = draw(1).sampler(0).state().text();
  CHECK_NOTHROW(SamplerState::parse(text));
  for (const auto& bad : {std::string(), std::string("{}"), text + " ", text.substr(1), std::string("[1,2]"),
                          std::string(R"({"data":"","epoch":-1,"row":0,"seed":1})"),
                          std::string(R"({"data":"","epoch":"0","row":0,"seed":1})")})
    CHECK_THROWS_AS(SamplerState::parse(bad), std::invalid_argument);
}
