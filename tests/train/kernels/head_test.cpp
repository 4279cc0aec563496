// SPDX-License-Identifier: Apache-2.0
// The head by a kernel against log_softmax in fp64, and against the head by ATen in a whole function: any number of
// columns, equal logits, infinities, NaN, labels at both ends and beyond, in whatever order threads run.
#include "trainer/kernels/head.hpp"

#include "tests/train/kernels/counted.hpp"
#include "tests/train/kernels/on_host.hpp"
#include "trainer/kernels/head_body.hpp"
#include "trainer/models/label_log_probabilities.hpp"
#include "trainer/models/token_batch.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using test::Draw, test::OnHost, test::same;

namespace {

struct Rows {
  at::Tensor logits, labels;
};

struct HeadOutcome {
  at::Tensor values, normalizers, slopes;
};

Rows draw_rows(Draw& draw) {
  const auto type = draw.type();
  const auto columns = draw.below(3) == 0 ? 1 + draw.below(40)
                       : draw.often()     ? 8 * (1 + draw.below(1000))
                                          : 1 + draw.below(9000);
  const auto tokens = 1 + draw.below(4);
  auto logits = draw.values({tokens, columns}, at::kFloat).mul_(draw.below(2) == 0 ? 1 : 6);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (draw.below(6) == 0) logits[0].fill_(0.5);         // all equal
  if (draw.below(8) == 0) logits[0].fill_(-kInfinity);  // nothing is possible
  if (draw.below(8) == 0 && columns > 2) logits[0].narrow(0, 0, columns - 1).fill_(-kInfinity);
  auto labels = at::randint(columns, {tokens}, at::kLong);
  if (draw.below(3) == 0) labels[0] = columns - 1;
  if (draw.below(3) == 0)
    labels[tokens - 1] = std::array{std::int64_t{-100}, columns}[static_cast<std::size_t>(draw.below(2))];
  // From an odd address, too.
  const auto from = draw.often() ? 0 : draw.below(8);
  const auto memory = at::empty({from + logits.numel()}, at::TensorOptions(type));
  return {memory.narrow(0, from, logits.numel()).view(logits.sizes()).copy_(logits), labels};
}

HeadOutcome by_kernel(const Rows& rows, bool slopes = true) {
  const auto both = at::full({2, rows.labels.numel()}, std::numeric_limits<float>::quiet_NaN());
  // The same place in memory as the rows', as far as packs are concerned.
  const auto from = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.logits.const_data_ptr()) % 16) /
                    rows.logits.element_size();
  auto logits = at::empty({from + rows.logits.numel()}, rows.logits.options())
                    .narrow(0, from, rows.logits.numel())
                    .view(rows.logits.sizes());
  logits.copy_(rows.logits);
  REQUIRE(kernels::head(logits, rows.labels, both[0], both[1], slopes));
  return {both[0], both[1], logits};
}

/// In fp64.
HeadOutcome expected_of(const Rows& rows) {
  const auto logits = rows.logits.to(at::kDouble);
  const auto logs = at::log_softmax(logits, 1);
  const auto columns = rows.labels.clamp(0, logits.size(1) - 1).unsqueeze(1);
  const auto missing = (columns.squeeze(1) != rows.labels);
  return {logs.gather(1, columns).squeeze(1).masked_fill(missing, std::numeric_limits<double>::quiet_NaN()),
          at::logsumexp(logits, 1),
          logs.exp().scatter_add(1, columns, at::full({}, -1, logits.options()).expand_as(columns))};
}

bool close(const at::Tensor& got, const at::Tensor& expected, double relative, double absolute) {
  return at::isclose(got.to(at::kDouble), expected, relative, absolute, /*equal_nan=*/true).all().item<bool>();
}

}  // namespace

TEST_CASE("the head by a kernel gives log-probabilities and slopes of fp64, rounded, in every order of threads") {
  torch::manual_seed(8);
  Draw draw;
  for (int round = 0; round < 150; ++round) {
    const auto rows = draw_rows(draw);
    const auto expected = expected_of(rows);
    const auto type = rows.logits.scalar_type();
    HeadOutcome first;
    for (const auto order : test::kOrders) {
      const OnHost host(order);
      const auto got = by_kernel(rows);
      CAPTURE(round);
      CAPTURE(type);
      CAPTURE(rows.logits.sizes());
      REQUIRE(close(got.values, expected.values, 3e-6, 1e-5));
      // Of a row of nothing but -infinity ATen's function of fp64 says -infinity, and the plain way NaN, as the kernel.
      const auto none = (rows.logits == -std::numeric_limits<double>::infinity()).all(1);
      REQUIRE(close(got.normalizers.masked_fill(none, 0),
                    expected.normalizers.masked_fill(none, 0).masked_fill(
                        (rows.logits == std::numeric_limits<double>::infinity()).any(1),
                        std::numeric_limits<double>::quiet_NaN()),
                    3e-6, 1e-5));
      const double bound = type == at::kFloat ? 1e-5 : type == at::kHalf ? 6e-4 : 4.5e-3;
      REQUIRE(close(got.slopes, expected.slopes, bound, type == at::kHalf ? 6e-8 : 1e-7));
      if (!first.values.defined()) first = got;
      REQUIRE(same(got.values, first.values));
      REQUIRE(same(got.normalizers, first.normalizers));
      REQUIRE(same(got.slopes, first.slopes));
    }
  }
}

TEST_CASE("the head by a kernel leaves logits as they are where no slopes are wanted") {
  const OnHost host(kernels::Order::Drawn);
  const Rows rows{at::randn({3, 100}), at::arange(3, at::kLong)};
  const auto with = by_kernel(rows), without = by_kernel(rows, /*slopes=*/false);
  CHECK(without.slopes.equal(rows.logits));
  CHECK(without.values.equal(with.values));
  CHECK_FALSE(with.slopes.equal(rows.logits));
}

TEST_CASE("label log-probabilities and their gradients are the same with the kernel and without") {
  torch::manual_seed(4);
  for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t vocabulary : {61, 64}) {
      const auto hidden = at::randn({2, 9, 16}).to(type), weight = (at::randn({vocabulary, 16}) * 0.5).to(type);
      auto labels = at::randint(vocabulary, {2, 9}, at::kLong);
      labels[0].narrow(0, 0, 4).fill_(kNoLabel);
      const auto run = [&](bool equal_weights) {
        const auto states = hidden.detach().requires_grad_(), head = weight.detach().requires_grad_();
        const auto logs = label_log_probabilities(states, head, labels, /*logits_at_a_time=*/5 * vocabulary,
                                                  c10::make_intrusive<TokenWeights>(), std::nullopt);
        const auto weights = equal_weights ? at::ones({}).expand({2, 9}) : at::rand({2, 9});
        torch::manual_seed(5);
        auto all = torch::autograd::grad({logs}, {states, head}, {weights});
        all.push_back(logs.detach());
        return all;
      };
      for (const bool equal : {true, false}) {
        torch::manual_seed(5);
        const auto expected = run(equal);
        const OnHost host(kernels::Order::Reversed);
        torch::manual_seed(5);
        const auto got = run(equal);
        CHECK(kernels::kernels_that_ran().contains("head"));
        CAPTURE(type);
        CAPTURE(vocabulary);
        CAPTURE(equal);
        const double bound = type == at::kFloat ? 1e-5 : 2e-2;
        for (std::size_t i = 0; i < got.size(); ++i) {
          CAPTURE(i);
          CHECK((got[i].scalar_type() == expected[i].scalar_type()));
          CHECK(at::allclose(got[i].to(at::kFloat), expected[i].to(at::kFloat), bound, bound));
        }
      }
    }
  }
}

namespace {

/// Runs fp32's kernels with numbers that count.
class CountingHead final : public kernels::Launcher {
 public:
  void launch(const kernels::Kernel& kernel, unsigned blocks, const void* args, std::size_t, c10::Device) override {
    using kernels::Counted, kernels::HeadArgs, kernels::HostBlock;
    const kernels::HostGrid grid{.blocks = blocks, .threads = kernel.threads, .order = kernels::Order::Drawn};
    const std::string name = kernel.name;
    REQUIRE(name.starts_with("sealift_head_fp32"));
    name.ends_with("by_4") ? kernels::run_on_host<HeadArgs, kernels::head<Counted, 4, HostBlock>>(grid, args)
                           : kernels::run_on_host<HeadArgs, kernels::head<Counted, 1, HostBlock>>(grid, args);
  }
};

}  // namespace

TEST_CASE("the head by a kernel writes every slope once") {
  kernels::register_launcher(at::kCPU, std::make_shared<CountingHead>());
  for (const std::int64_t columns : {1, 3, 31, 512, 513, 2048, 4100}) {
    CAPTURE(columns);
    const auto both = at::full({2, 3}, std::numeric_limits<float>::quiet_NaN());
    const auto logits = at::randn({3, columns});
    kernels::Counted::writes().clear();
    CHECK(kernels::head(logits, at::zeros({3}, at::kLong), both[0], both[1], true));
    CHECK(kernels::written(logits.const_data_ptr(), static_cast<std::size_t>(logits.numel())) == std::pair{1, 1});
    CHECK_FALSE(both.isnan().any().item<bool>());
  }
  kernels::register_launcher(at::kCPU, nullptr);
}

TEST_CASE("the head goes ATen's way with what its kernel does not take") {
  const OnHost host(kernels::Order::Given);
  const auto takes = [](const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& values) {
    return kernels::head(logits, labels, values, values.clone(), true);
  };
  const auto logits = at::randn({3, 8}), values = at::zeros({3});
  const auto labels = at::zeros({3}, at::kLong);
  CHECK(takes(logits, labels, values));
  CHECK_FALSE(takes(logits.to(at::kDouble), labels, values));
  CHECK_FALSE(takes(at::randn({8, 3}).t(), labels, values));
  CHECK_FALSE(takes(logits, labels.to(at::kInt), values));
  CHECK_FALSE(takes(logits, labels.narrow(0, 0, 2), values));
  CHECK_FALSE(takes(logits, labels, values.to(at::kDouble)));
  CHECK_FALSE(takes(at::randn({0, 8}), labels.narrow(0, 0, 0), values.narrow(0, 0, 0)));
}
