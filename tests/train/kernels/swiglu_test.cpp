// SPDX-License-Identifier: Apache-2.0
// SwiGLU by kernels against SwiGLU by ATen, forward and backward: whatever the sizes, rows, addresses and values, and
// in whatever order threads run. Exponentials of ATen's vectors and of libm differ in the last bit, so fp32 agrees to
// 2e-6 and halves to one rounding of theirs.
#include "trainer/kernels/swiglu.hpp"

#include "tests/train/kernels/counted.hpp"
#include "tests/train/kernels/on_host.hpp"
#include "trainer/kernels/swiglu_body.hpp"
#include "trainer/models/feed_forward.hpp"

#include <doctest/doctest.h>

using namespace sealift;
using namespace sealift::trainer;
using test::Draw, test::OnHost, test::same, test::within;

namespace {

struct Gated {
  at::Tensor gate, up, gradient;
};

Gated draw_gated(Draw& draw) {
  const auto type = draw.type();
  const auto width = draw.often() ? 8 * (1 + draw.below(40)) : 1 + draw.below(300);
  const std::vector<std::int64_t> sizes{1 + draw.below(3), draw.often() ? 1 + draw.below(5) : 0, width};
  Gated made;
  if (sizes[1] > 0 && draw.below(2) == 0) {  // as experts have them
    const auto both = draw.values({sizes[0], sizes[1], 2 * width}, type);
    made.gate = both.narrow(-1, 0, width), made.up = both.narrow(-1, width, width);
  } else {
    const auto plain = [&] { return sizes[1] == 0 ? at::empty(sizes, type) : draw.rows(draw.values(sizes, type)); };
    made.gate = plain(), made.up = plain();
  }
  made.gradient = sizes[1] == 0 ? at::empty(sizes, type) : draw.rows(draw.values(sizes, type));
  return made;
}

std::vector<at::Tensor> gated_outcome(const Gated& given) {
  const auto gate = given.gate.detach().requires_grad_(), up = given.up.detach().requires_grad_();
  const auto result = swiglu(gate, up);
  const auto gradients = torch::autograd::grad({result}, {gate, up}, {given.gradient});
  return {result.detach(), gradients[0], gradients[1]};
}

/// What rounding errors of the output and of both gradients are parts of: sums within the gate's may cancel.
std::vector<at::Tensor> sizes_of(const Gated& given, const std::vector<at::Tensor>& expected) {
  return {expected[0],
          expected[1].abs().to(at::kDouble) + (given.gradient.to(at::kDouble) * given.up.to(at::kDouble)).abs(),
          expected[2]};
}

double a_few_roundings(at::ScalarType type) {
  return type == at::kFloat ? 2e-6 : type == at::kHalf ? 2e-3 : 1.6e-2;
}

}  // namespace

TEST_CASE("SwiGLU by kernels gives ATen's numbers, forward and backward, in every order of threads") {
  torch::manual_seed(6);
  Draw draw;
  for (int round = 0; round < 120; ++round) {
    const auto given = draw_gated(draw);
    const auto expected = gated_outcome(given);
    const auto sizes = sizes_of(given, expected);
    std::vector<at::Tensor> first;
    for (const auto order : test::kOrders) {
      const OnHost host(order);
      const auto got = gated_outcome(given);
      CHECK(kernels::kernels_that_ran().contains("swiglu") == (given.gate.numel() > 0));
      if (first.empty()) first = got;
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(round);
        CAPTURE(i);
        CAPTURE(given.gate.sizes());
        CAPTURE(given.gate.scalar_type());
        REQUIRE(within(got[i], expected[i], a_few_roundings(got[i].scalar_type()), sizes[i],
                       got[i].scalar_type() == at::kHalf ? 2e-7 : 1e-30));
        REQUIRE(same(got[i], first[i]));
      }
    }
  }
}

TEST_CASE("SwiGLU goes ATen's way with what its kernels do not take") {
  const OnHost host(kernels::Order::Given);
  const auto plain = at::randn({2, 3, 8});
  CHECK(kernels::swiglu(plain, plain).defined());
  CHECK_FALSE(kernels::swiglu(plain.to(at::kDouble), plain.to(at::kDouble)).defined());
  CHECK_FALSE(kernels::swiglu(plain, plain.to(at::kBFloat16)).defined());
  CHECK_FALSE(kernels::swiglu(plain.transpose(0, 2), plain.transpose(0, 2)).defined());
  CHECK_FALSE(kernels::swiglu(at::randn({4, 3, 8}).slice(0, 0, 4, 2).transpose(0, 1), at::randn({3, 2, 8})).defined());
  CHECK_FALSE(kernels::swiglu_backward(at::ones({1}).expand({2, 3, 8}), plain, plain).first.defined());
  // One row for all, and rows of which one stands for several: rows they are, equally far apart.
  const auto row = at::randn({8}).expand({2, 3, 8});
  CHECK(same(kernels::swiglu(row, row), kernels::swiglu(row.contiguous(), row.contiguous())));
  CHECK_FALSE(kernels::swiglu(at::randn({2, 1, 8}).expand({2, 3, 8}), plain).defined());
  kernels::switch_kernels(false);
  CHECK_FALSE(kernels::swiglu(plain, plain).defined());
  kernels::switch_kernels(true);
}

namespace {

/// Runs fp32's kernels with numbers that count.
class CountingSwiGlu final : public kernels::Launcher {
 public:
  void launch(const kernels::Kernel& kernel, unsigned blocks, const void* args, std::size_t, c10::Device) override {
    using kernels::Counted, kernels::HostBlock, kernels::SwiGluArgs, kernels::SwiGluBackwardArgs, kernels::run_on_host;
    const kernels::HostGrid grid{.blocks = blocks, .threads = kernel.threads, .order = kernels::Order::Drawn};
    const std::string name = kernel.name;
    if (name == "sealift_swiglu_fp32") run_on_host<SwiGluArgs, kernels::swiglu<Counted, 1, HostBlock>>(grid, args);
    if (name == "sealift_swiglu_fp32_by_4") run_on_host<SwiGluArgs, kernels::swiglu<Counted, 4, HostBlock>>(grid, args);
    if (name == "sealift_swiglu_backward_fp32")
      run_on_host<SwiGluBackwardArgs, kernels::swiglu_backward<Counted, 1, HostBlock>>(grid, args);
    if (name == "sealift_swiglu_backward_fp32_by_4")
      run_on_host<SwiGluBackwardArgs, kernels::swiglu_backward<Counted, 4, HostBlock>>(grid, args);
  }
};

}  // namespace

TEST_CASE("SwiGLU by kernels writes every output once") {
  kernels::register_launcher(at::kCPU, std::make_shared<CountingSwiGlu>());
  for (const std::int64_t width : {1, 3, 4, 16, 255, 256, 1028}) {
    for (const std::int64_t rows : {1, 2, 40}) {
      CAPTURE(width);
      CAPTURE(rows);
      const auto given = at::randn({rows, width});
      const auto once = [&](const at::Tensor& output) {
        CHECK(kernels::written(output.const_data_ptr(), static_cast<std::size_t>(output.numel())) == std::pair{1, 1});
      };
      kernels::Counted::writes().clear();
      once(kernels::swiglu(given, given));
      kernels::Counted::writes().clear();
      const auto [of_gate, of_up] = kernels::swiglu_backward(given, given, given);
      once(of_gate);
      once(of_up);
    }
  }
  kernels::register_launcher(at::kCPU, nullptr);
}
