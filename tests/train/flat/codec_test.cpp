// SPDX-License-Identifier: Apache-2.0
// codec.hpp: what a quantized gather sends, how far it is from the truth, and that all ranks compute with one truth.
// The bound is the header's; the truth is the shard itself.
// Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();

Policy quantized(Policy policy) {
  policy.compression.gather = GatherCompression::Int8;
  return policy;
}

/// Values of very different sizes from block to block, with zeros among them.
at::Tensor uneven(std::int64_t numel, at::ScalarType dtype) {
  const auto index = torch::arange(numel, torch::kDouble);
  return (torch::sin(index * 0.7) * torch::pow(10, torch::floor(index / 200) % 5 - 3) * (index % 7 != 0)).to(dtype);
}

/// What a rank of one gets back from its own message.
at::Tensor through(const at::Tensor& shard, at::ScalarType dtype) {
  const auto options = shard.options().dtype(dtype);
  auto whole = torch::full({shard.numel()}, 99, options);
  Int8Codec().decode(whole, Int8Codec().encode(shard, options), 1);
  return whole;
}

}  // namespace

TEST_CASE("a quantized message is one byte an element and four for each block of 256") {
  const auto bytes_of_message = [](std::int64_t numel) {
    return Int8Codec().encode(uneven(numel, at::kFloat), torch::kFloat32).numel();
  };
  CHECK(bytes_of_message(512) == 512 + 2 * 4);
  CHECK(bytes_of_message(16) == 16 + 4);
  CHECK(bytes_of_message(1001) == 1004 + 4 * 4);
  CHECK(bytes_of_message(0) == 0);
  CHECK(Int8Codec::message_bytes(1000) == 1016);
}

TEST_CASE("a quantized value is within 1/253 of its block's largest of the true one, in every dtype and size") {
  for (const auto from : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const auto to : {at::kFloat, at::kHalf, at::kBFloat16}) {
      for (const std::int64_t n : {1, 16, 255, 256, 257, 1024, 5000}) {
        CAPTURE(from);
        CAPTURE(to);
        CAPTURE(n);
        const auto x = uneven(n, from), y = through(x, to).to(at::kDouble);
        // Rounding to the whole's dtype comes on top; fp16's smallest step is 6e-8.
        const double rounding = to == at::kFloat ? 1e-7 : to == at::kHalf ? 1.0 / 2048 : 1.0 / 256;
        for (std::int64_t begin = 0; begin < n; begin += Int8Codec::kBlock) {
          const auto size = std::min(Int8Codec::kBlock, n - begin);
          const auto truth = x.narrow(0, begin, size).to(at::kDouble);
          const auto largest = truth.abs().max().item<double>();
          const auto error = (y.narrow(0, begin, size) - truth).abs().max().item<double>();
          CHECK(error <= largest / 253 + largest * rounding + (to == at::kHalf ? 6e-8 : 0));
        }
        CHECK(y.masked_select(x.to(at::kDouble) == 0).abs().sum().item<double>() == 0);
      }
    }
  }
}

TEST_CASE("zeros come through as zeros, and the smallest numbers as nothing larger than those") {
  CHECK(through(torch::zeros({300}), at::kFloat).equal(torch::zeros({300})));
  const auto tiny = torch::full({300}, 3e-45);  // subnormal: its scale would be rounded to nothing
  CHECK(through(tiny, at::kFloat).abs().max().item<float>() <= std::numeric_limits<float>::min());
}

TEST_CASE("a block with a NaN or an infinity decodes to nothing finite, and its neighbours are as they were") {
  const auto good = uneven(1024, at::kFloat);
  for (const double spoil : {kNaN, kInfinity, -kInfinity}) {
    CAPTURE(spoil);
    auto bad = good.clone();
    bad[300] = spoil;
    const auto y = through(bad, at::kFloat);
    CHECK_FALSE(y.narrow(0, 256, 256).isfinite().any().item<bool>());
    CHECK(y.narrow(0, 0, 256).equal(through(good, at::kFloat).narrow(0, 0, 256)));
    CHECK(y.narrow(0, 512, 512).equal(through(good, at::kFloat).narrow(0, 512, 512)));
  }
}

TEST_CASE("under a quantized gather every rank holds the same bits, its own part included, over 2 and 4 ranks") {
  for (const std::int64_t ranks : {2, 4}) {
    for (const auto dtype : {std::optional<at::ScalarType>(), std::optional(at::kBFloat16)}) {
      std::vector<std::vector<at::Tensor>> held(static_cast<std::size_t>(ranks));
      on_ranks(ranks, [&](const World& world) {
        auto policy = quantized(fsdp());
        policy.precision.param_dtype = dtype;
        Shardable<Net> net, exact;
        auto parallel = parallelize(*net, groups_of(world, policy), policy);
        auto own = parallel.named_shards()[0].tensor.clone();
        const auto whole = parallel.gather_parameters();
        CHECK(own.equal(parallel.named_shards()[0].tensor));  // what the optimizer steps is not touched
        const auto truth = exact->parameters();
        for (const auto& parameter : net->parameters()) {
          const auto& true_values = truth[held[static_cast<std::size_t>(world.rank)].size()];
          held[static_cast<std::size_t>(world.rank)].push_back(parameter.detach().clone());
          // Values of this model are at most 1 (`frozen` and `gain`), and a block may hold several parameters.
          CHECK((parameter.detach().to(at::kFloat) - true_values).abs().max().item<double>() <= 1.0 / 253 + 1.0 / 256);
        }
      });
      bool exact = true;
      Shardable<Net> truth;
      for (std::size_t i = 0; i < held[0].size(); ++i) {
        for (const auto& other : held) CHECK(other[i].equal(held[0][i]));
        exact = exact && held[0][i].to(at::kFloat).equal(truth->parameters()[i]);
      }
      CHECK_FALSE(exact);  // it really was quantized
    }
  }
}

TEST_CASE("a quantized gather sends its messages and nothing else, over 4 ranks") {
  on_ranks(4, [](const World& world) {
    const auto policy = quantized(fsdp());
    Shardable<Net> net;
    auto groups = groups_of(world, policy);
    auto parallel = parallelize(*net, groups, policy);
    std::int64_t expected = 0, exact = 0, flats = 0;
    for (const auto& unit : parallel.units()) {
      for (const auto& flat : unit->flats()) {
        expected += 3 * Int8Codec::message_bytes(flat->layout().shard_numel);
        exact += 3 * flat->layout().shard_numel * 4;
        ++flats;
      }
    }
    *groups.traffic = {};
    { const auto whole = parallel.gather_parameters(); }
    CHECK(groups.traffic->all_gather == Traffic{.calls = flats, .bytes = expected});
    CHECK(expected * 3 < exact);
  });
}

TEST_CASE("training through a quantized gather converges as the exact one does, over 2 ranks and with reshard_group") {
  const Loop loop{.steps = 60};
  const auto exact = train_on_ranks(2, fsdp(), loop);
  REQUIRE(exact.losses.back() < 0.2 * exact.losses.front());
  const auto check = [&](const Outcome& got) {
    CHECK(got.losses.front() == doctest::Approx(exact.losses.front()).epsilon(0.05));
    CHECK(got.losses != exact.losses);
    CHECK(got.losses.back() < 0.25 * got.losses.front());
  };
  check(train_on_ranks(2, quantized(fsdp()), loop));
  auto grouped = quantized(fsdp());
  grouped.reshard_group = 2;
  check(train_on_ranks(4, grouped, loop));
  check(train_on_ranks(4, quantized(hsdp(2)), loop));
}

TEST_CASE("flats of whole numbers are gathered as they are, and ddp refuses a codec since it gathers nothing") {
  const auto numbers = torch::arange(64, torch::kInt64);
  CHECK(make_codec(GatherCompression::Int8, at::kLong)->encode(numbers, numbers.options()).equal(numbers));
  on_ranks(2, [](const World& world) {
    const auto policy = quantized(ddp());
    Shardable<Net> net;
    CHECK_THROWS_WITH_AS(parallelize(*net, groups_of(world, policy), policy), doctest::Contains("gathers nothing"),
                         c10::Error);
  });
}
