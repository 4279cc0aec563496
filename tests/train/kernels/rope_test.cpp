// SPDX-License-Identifier: Apache-2.0
// Rope by a kernel against rope by ATen, forward and backward, whatever the sizes, strides, addresses and values, and
// in whatever order threads run. ATen's CPU joins the second product with the sum, so both agree to a rounding of the
// pair.
#include "trainer/kernels/rope.hpp"

#include "tests/train/kernels/counted.hpp"
#include "tests/train/kernels/on_host.hpp"
#include "trainer/kernels/rope_body.hpp"
#include "trainer/models/rope.hpp"

#include <doctest/doctest.h>
#include <torch/torch.h>

using namespace sealift;
using namespace sealift::trainer;
using test::Draw, test::OnHost, test::same, test::within;

namespace {

/// The same heads somewhere else in memory: from an odd address, with tokens behind heads, with gaps.
at::Tensor laid(Draw& draw, const at::Tensor& heads) {
  return draw.below(2) == 0 ? draw.rows(heads) : draw.rows(heads.transpose(1, 2).contiguous()).transpose(1, 2);
}

struct Case {
  at::Tensor queries, keys, for_queries, for_keys;  ///< with the gradients of what comes out
  RopeTables tables;
};

Case draw_case(Draw& draw) {
  const auto type = draw.type();
  const auto batch = 1 + draw.below(3), time = 1 + draw.below(6), heads = 1 + draw.below(6), shared = 1 + draw.below(4);
  const auto half = draw.often() ? 4 * (1 + draw.below(20)) : 1 + draw.below(40);
  Case made;
  if (draw.below(2) == 0) {  // as a joined projection has them
    const auto both = draw.values({batch, time, heads + shared, 2 * half}, type);
    made.queries = both.narrow(2, 0, heads), made.keys = both.narrow(2, heads, shared);
  } else {
    made.queries = laid(draw, draw.values({batch, time, heads, 2 * half}, type));
    made.keys = laid(draw, draw.values({batch, time, shared, 2 * half}, type));
  }
  made.for_queries = laid(draw, draw.values({batch, time, heads, 2 * half}, type));
  made.for_keys = laid(draw, draw.values({batch, time, shared, 2 * half}, type));
  const auto angles = at::rand({draw.below(2) == 0 ? 1 : batch, time, 1, half}) * 7;
  made.tables = {angles.cos(), angles.sin()};
  return made;
}

/// |a| + |b| of each pair that is turned, at both places.
at::Tensor size_of_pairs(const at::Tensor& heads) {
  const auto halves = heads.to(at::kDouble).abs().unflatten(-1, {2, -1}).sum(-2);
  return at::cat({halves, halves}, -1);
}

double a_rounding(at::ScalarType type) {
  return type == at::kFloat ? 2.4e-7 : type == at::kHalf ? 1e-3 : 8e-3;
}

/// Turned queries and keys, then the gradients of both.
std::vector<at::Tensor> outcome(const Case& given) {
  const auto queries = given.queries.detach().requires_grad_(), keys = given.keys.detach().requires_grad_();
  const auto [turned_queries, turned_keys] = rotate(queries, keys, given.tables);
  const auto gradients =
      torch::autograd::grad({turned_queries, turned_keys}, {queries, keys}, {given.for_queries, given.for_keys});
  return {turned_queries.detach(), turned_keys.detach(), gradients[0], gradients[1]};
}

}  // namespace

TEST_CASE("rope by the kernel gives ATen's numbers, forward and backward, in every order of threads") {
  torch::manual_seed(5);
  Draw draw;
  for (int round = 0; round < 120; ++round) {
    const auto given = draw_case(draw);
    const auto expected = outcome(given);
    std::vector<at::Tensor> first;
    for (const auto order : test::kOrders) {
      const OnHost host(order);
      const auto got = outcome(given);
      if (first.empty()) first = got;
      REQUIRE(kernels::kernels_that_ran().contains("rope"));
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(round);
        CAPTURE(i);
        CAPTURE(given.queries.sizes());
        CAPTURE(given.queries.scalar_type());
        const at::Tensor from = std::array{given.queries, given.keys, given.for_queries, given.for_keys}[i];
        REQUIRE(within(got[i], expected[i], a_rounding(from.scalar_type()), size_of_pairs(from), 1e-7));
        REQUIRE(same(got[i], first[i]));
      }
    }
  }
}

TEST_CASE("rope by the kernel lays queries and keys side by side where they came so") {
  const OnHost host(kernels::Order::Given);
  const auto both = at::randn({2, 3, 5, 8});
  const auto [queries, keys] =
      rotate(both.narrow(2, 0, 3), both.narrow(2, 3, 2), {at::ones({1, 3, 1, 4}), at::zeros({1, 3, 1, 4})});
  CHECK(queries.is_alias_of(keys));
  CHECK(queries.equal(both.narrow(2, 0, 3)));
  CHECK(keys.equal(both.narrow(2, 3, 2)));
}

TEST_CASE("rope goes ATen's way with what the kernel does not take, and where it is switched off") {
  const OnHost host(kernels::Order::Given);
  const RopeTables tables{at::ones({1, 3, 1, 4}), at::zeros({1, 3, 1, 4})};
  const auto plain = at::randn({2, 3, 4, 8});
  const auto takes = [&](const at::Tensor& queries, const at::Tensor& keys, const RopeTables& by) {
    kernels::forget_kernels_that_ran();
    const auto [turned, others] = rotate(queries, keys, by);
    CHECK(turned.to(at::kFloat).equal(queries.to(at::kFloat)));
    return kernels::kernels_that_ran().contains("rope");
  };
  CHECK(takes(plain, plain, tables));
  CHECK_FALSE(takes(plain.to(at::kDouble), plain.to(at::kDouble), tables));
  CHECK_FALSE(takes(plain, plain.to(at::kBFloat16), tables));
  const auto apart = at::randn({2, 3, 4, 16}).slice(3, 0, 16, 2);
  CHECK_FALSE(takes(apart, plain, tables));
  CHECK_FALSE(takes(plain, plain, {tables.cos.to(at::kDouble).to(at::kFloat).expand({2, 3, 1, 4}), tables.sin}));
  kernels::switch_kernels(false);
  CHECK_FALSE(takes(plain, plain, tables));
  kernels::switch_kernels(true);
}

namespace {

/// Runs fp32's kernels with numbers that count, in memory that is NaN before.
class CountingLauncher final : public kernels::Launcher {
 public:
  void launch(const kernels::Kernel& kernel, unsigned blocks, const void* args, std::size_t, c10::Device) override {
    using kernels::Counted, kernels::HostBlock, kernels::RopeArgs;
    const kernels::HostGrid grid{.blocks = blocks, .threads = kernel.threads, .order = kernels::Order::Drawn};
    const std::string name = kernel.name;
    REQUIRE(name.starts_with("sealift_rope_fp32"));
    name.ends_with("by_4") ? kernels::run_on_host<RopeArgs, kernels::rope<Counted, 4, HostBlock>>(grid, args)
                           : kernels::run_on_host<RopeArgs, kernels::rope<Counted, 1, HostBlock>>(grid, args);
  }
};

}  // namespace

TEST_CASE("rope by the kernel writes every output once and nothing beside it") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Draw draw;
  for (const std::int64_t half : {1, 3, 4, 8, 12, 33, 64, 256}) {
    for (const std::int64_t heads : {1, 2, 7, 40}) {
      const auto both = at::randn({2, 3, heads + 2, 2 * half});
      auto memory = at::full({64 + both.numel() + 64}, kNan);
      const auto to = memory.narrow(0, 64, both.numel()).view(both.sizes());
      const auto tables = at::randn({2, 3, 1, half});
      kernels::Counted::writes().clear();
      CountingLauncher launcher;
      kernels::rope(launcher, both.narrow(2, 0, heads), both.narrow(2, heads, 2), tables, tables, 1,
                    to.narrow(2, 0, heads), to.narrow(2, heads, 2));
      CAPTURE(half);
      CAPTURE(heads);
      CHECK(kernels::written(to.const_data_ptr(), static_cast<std::size_t>(to.numel())) == std::pair{1, 1});
      CHECK(kernels::written(memory.const_data_ptr(), 64) == std::pair{0, 0});
      CHECK(kernels::written(to.const_data_ptr<float>() + to.numel(), 64) == std::pair{0, 0});
      CHECK_FALSE(to.isnan().any().item<bool>());
    }
  }
}
