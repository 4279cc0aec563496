// SPDX-License-Identifier: Apache-2.0
// What the second run of a recomputed body finds: autocast and random numbers of the first, and nothing left behind.
// Against the same body without recompute, bit for bit; autocast is the host's, in bf16.
// A thread-local state that no input shows is what makes recomputation silently wrong, so each has a case here.
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// A bf16 autocast region on the host, as a training loop opens it around its forward only.
class Autocast {
 public:
  explicit Autocast(at::ScalarType dtype = torch::kBFloat16) {
    before_ = sealift::train::detail::AutocastState::current();
    auto state = before_;
    state.enabled[0] = true;
    state.dtype[0] = dtype;
    state.set();
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    before_.set();
  }

 private:
  sealift::train::detail::AutocastState before_;
};

at::Tensor sines(std::vector<std::int64_t> shape) {
  return torch::sin(torch::arange(torch::ones(shape).numel()) * 0.7).view(shape);
}

/// Three weights: of the body alone, twice in the body, and of the body and the head after it.
struct Weights {
  at::Tensor once = sines({12, 12}).requires_grad_();
  at::Tensor twice = (sines({12, 12}) * 0.5).requires_grad_();
  at::Tensor tied = (sines({12, 12}) * 0.9).requires_grad_();
};

enum class Way { Plain, Recomputed, Nested };

/// Gradients of the weights and the input by a forward under autocast, and whether the body's product was in bf16.
std::vector<at::Tensor> gradients_of(Way way, bool tied_head, std::vector<at::ScalarType>* seen = nullptr) {
  Weights weights;
  const auto x = sines({5, 12}).requires_grad_();
  const auto body = [&](const at::Tensor& input) {
    const auto first = torch::mm(input, weights.once).tanh();
    if (seen) seen->push_back(first.scalar_type());
    const auto y = torch::mm(torch::mm(first, weights.twice), weights.twice);
    return tied_head ? torch::mm(y, weights.tied) : y;
  };
  at::Tensor loss;
  {
    const Autocast region;
    at::Tensor y;
    if (way == Way::Plain) y = body(x);
    if (way == Way::Recomputed) y = recompute(body, x);
    if (way == Way::Nested) y = recompute([&](const at::Tensor& input) { return recompute(body, input) * 1; }, x);
    loss = torch::mm(y, weights.tied).to(torch::kFloat32).square().mean();
  }
  loss.backward();
  return {weights.once.grad(), weights.twice.grad(), weights.tied.grad(), x.grad()};
}

}  // namespace

TEST_CASE("recompute under autocast equals no recompute bit for bit: issue 15, silently wrong 8") {
  const auto expected = gradients_of(Way::Plain, false);
  for (const auto way : {Way::Recomputed, Way::Nested}) {
    std::vector<at::ScalarType> seen;
    const auto got = gradients_of(way, false, &seen);
    CHECK((seen == std::vector<at::ScalarType>(way == Way::Nested ? 3 : 2, torch::kBFloat16)));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(expected[i]));
  }
}

TEST_CASE("a weight that autocast casts in a body and again after it gets both gradients") {
  const auto expected = gradients_of(Way::Plain, true);
  const auto got = gradients_of(Way::Recomputed, true);
  // The plain call adds the two gradients of its one cast in bf16.
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].allclose(expected[i], 2e-2, 1e-5));
}

TEST_CASE("backward and a body that throws leave autocast, its cache and the random numbers as they were") {
  const auto x = sines({4, 12}).requires_grad_();
  const auto weight = (sines({12, 12}) * 1).requires_grad_();  // no view, so that autocast keeps its cast
  bool throws = false;
  const auto body = [&](const at::Tensor& input) {
    const auto y = torch::dropout(torch::mm(input, weight), 0.5, true);
    TORCH_CHECK(!throws, "no second time");
    return y;
  };
  const auto forward = [&] {
    const Autocast region;
    return recompute(body, x).to(torch::kFloat32).sum();
  };
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    throws = false;
    torch::manual_seed(3);
    auto loss = forward();
    torch::rand({4});
    const auto next = torch::rand({4});
    torch::manual_seed(3);
    forward();
    torch::rand({4});  // so that the body's numbers do not end where they are now
    throws = fails;
    if (fails) {
      CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("no second time"), c10::Error);
    } else {
      loss.backward();
    }
    CHECK(torch::rand({4}).equal(next));
    CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    CHECK(at::autocast::is_autocast_cache_enabled());
    CHECK((torch::mm(x, weight).scalar_type() == torch::kFloat32));
    // Nothing cached: the weight's next cast is of its new value.
    at::NoGradGuard no_grad;
    weight.add_(1);
    const Autocast region;
    CHECK(torch::mm(x, weight).equal(torch::mm(x.to(torch::kBFloat16), weight.detach().to(torch::kBFloat16))));
  }
}

TEST_CASE("a backward inside an autocast region recomputes by the forward's state, not by the region's") {
  Weights weights;
  const auto x = sines({5, 12}).requires_grad_();
  const auto run = [&](bool recomputed) {
    weights.once.mutable_grad() = at::Tensor();
    const auto body = [&](const at::Tensor& input) { return torch::mm(input, weights.once).tanh(); };
    auto loss = (recomputed ? recompute(body, x) : body(x)).square().sum();  // in fp32
    const Autocast region;
    loss.backward();
    return weights.once.grad();
  };
  const auto expected = run(false);
  // Autocast reaches the backward's own products either way.
  CHECK(run(true).equal(expected));
}

TEST_CASE("a body whose dtype differs in backward is an error that says so") {
  bool second = false;
  const auto x = sines({3}).requires_grad_();
  auto loss =
      recompute([&](const at::Tensor& y) { return std::exchange(second, true) ? y.to(torch::kHalf) : y * 2; }, x).sum();
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("output 0 is Half in backward and Float in forward"),
                       c10::Error);
}

TEST_CASE("a generator that the body did not draw from goes on through the backward") {
  const auto x = sines({3}).requires_grad_();
  torch::manual_seed(9);
  auto loss = recompute([](const at::Tensor& y) { return y.exp(); }, x).sum();
  auto drawn = torch::rand({2});
  x.register_hook([&](const at::Tensor& gradient) {
    drawn = torch::rand({2});
    return gradient;
  });
  loss.backward();
  torch::manual_seed(9);
  torch::rand({2});
  CHECK(torch::rand({2}).equal(drawn));
}
