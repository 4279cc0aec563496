// SPDX-License-Identifier: Apache-2.0
// Gradient norms over ranks against the same gradients on one process, and the detector of NaN.
// Worlds whose shards are empty, replicated, half precision or without a gradient are made by hand.
#include "tests/train/fixture.hpp"

#include <limits>

using namespace sealift::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// One backward of a Net on this rank's part of the first batch, its loss multiplied by `factor`; returns the loss.
at::Tensor backward(Shardable<Net>& net, const World& world, double factor = 1) {
  const auto [ids, targets] = batch_of(0);
  const auto rows = kBatch / world.size;
  auto loss = factor * torch::nn::functional::cross_entropy(net(ids.narrow(0, world.rank * rows, rows)),
                                                            targets.narrow(0, world.rank * rows, rows));
  loss.backward();
  return loss.detach();
}

/// Calls `body(parallel, net)` on each rank after such a backward.
template <class Body>
void after_backward(std::int64_t ranks, const Policy& policy, Body body) {
  on_ranks(ranks, [&](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, ranks)), policy);
    backward(net, world);
    body(parallel, net);
  });
}

/// The gradients of one process as one vector.
const at::Tensor& expected_gradients() {
  static const at::Tensor gradients = [] {
    Shardable<Net> net;
    backward(net, {});
    std::vector<at::Tensor> flat;
    for (const auto& parameter : net->parameters()) {
      if (parameter.grad().defined()) flat.push_back(parameter.grad().reshape({-1}));
    }
    return at::cat(flat).to(torch::kFloat64);
  }();
  return gradients;
}

/// Parameters with these gradients (undefined: none), the odd ones replicated.
Parallel made_by_hand(Groups groups, const std::vector<at::Tensor>& gradients) {
  std::vector<ShardedParameter> parameters;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto like = gradients[i].defined() ? gradients[i] : torch::zeros({3});
    auto leaf = torch::zeros_like(like).requires_grad_();
    leaf.mutable_grad() = gradients[i];
    parameters.push_back(
        {.name = c10::str("p", i), .sizes = like.sizes().vec(), .shard = leaf, .replicated = i % 2 == 1});
  }
  return Parallel(std::make_shared<Session>(Policy{}, groups), std::move(parameters), {}, {});
}

}  // namespace

TEST_CASE("the norm over ranks is that of one process, for orders 1, 2, 3.5 and infinity") {
  for (const double order : {1.0, 2.0, 3.5, kInfinity}) {
    CAPTURE(order);
    const double expected = at::linalg_vector_norm(expected_gradients(), order).item<double>();
    for (const auto& [ranks, policy] : std::vector<std::pair<std::int64_t, Policy>>{
             {1, {}}, {1, fsdp()}, {2, fsdp()}, {3, fsdp()}, {4, fsdp()}, {3, ddp()}, {4, hsdp(2)}}) {
      CAPTURE(ranks);
      after_backward(ranks, policy, [&](Parallel& parallel, auto&) {
        CHECK(gradient_norm(parallel, order) == doctest::Approx(expected).epsilon(1e-5));
      });
    }
  }
}

TEST_CASE("clipping returns the norm before and leaves the norm asked for") {
  for (const double order : {1.0, 2.0, kInfinity}) {
    after_backward(2, fsdp(), [&](Parallel& parallel, auto&) {
      const double before = gradient_norm(parallel, order);
      CHECK(clip_grad_norm_(parallel, before / 4, order).item<double>() == before);
      CHECK(gradient_norm(parallel, order) == doctest::Approx(before / 4).epsilon(1e-4));
    });
  }
}

TEST_CASE("gradients below the norm asked for keep every bit") {
  after_backward(2, fsdp(), [](Parallel& parallel, auto&) {
    const auto before = parallel.shards().front().grad().clone();
    clip_grad_norm_(parallel, 1e6);
    CHECK(parallel.shards().front().grad().equal(before));
  });
}

TEST_CASE("a replicated gradient counts once, a sharded one on every rank that holds a part") {
  on_ranks(3, [](const World& world) {
    // Ranks hold 3, 4 and nothing; all of them hold 12.
    const auto mine = world.rank == 2 ? torch::zeros({0}) : torch::full({1}, world.rank == 0 ? 3.0 : 4.0);
    auto parallel = made_by_hand(make_groups(world, {1, 3}), {mine, torch::full({1}, 12.0)});
    CHECK(gradient_norm(parallel) == doctest::Approx(13));
    CHECK(gradient_norm(parallel, 1) == doctest::Approx(19));
    CHECK(gradient_norm(parallel, kInfinity) == 12);
  });
}

TEST_CASE("no gradients have the norm zero, and one rank may be without") {
  on_ranks(2, [](const World& world) {
    const auto groups = make_groups(world, {1, 2});
    auto parallel = made_by_hand(groups, {at::Tensor(), at::Tensor()});
    CHECK(clip_grad_norm_(parallel, 1).item<double>() == 0);
    auto uneven = made_by_hand(groups, {world.rank == 0 ? torch::full({4}, 2.0) : at::Tensor()});
    for (const double order : {2.0, kInfinity}) CHECK(gradient_norm(uneven, order) == (order == 2 ? 4 : 2));
  });
}

TEST_CASE("large gradients of equal and of half precision elements lose no digits of fp32") {
  // One sum per lane of a register, as at::_foreach_norm adds up on a host, is off by 1e-4 and more here.
  const auto gradient = torch::full({300'000}, 0.01, torch::kBFloat16);
  const double element = gradient[0].item<double>();
  auto parallel = made_by_hand({}, {gradient, torch::full({300'000}, 0.01)});
  const double expected = std::sqrt(300'000 * (element * element + 0.01 * 0.01));
  CHECK(gradient_norm(parallel) == doctest::Approx(expected).epsilon(1e-6));
  clip_grad_norm_(parallel, 1);
  CHECK(gradient_norm(parallel) == doctest::Approx(1).epsilon(2e-3));
}

TEST_CASE("the norm is exact for sizes around a row and a part, transposed gradients and every dtype") {
  for (const std::int64_t numel : {1, 1023, 1024, 1025, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 3}) {
    for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kBFloat16, torch::kHalf}) {
      CAPTURE(numel);
      const auto gradient = torch::sin(torch::arange(numel, torch::kFloat64)).to(dtype);
      auto parallel = made_by_hand({}, {gradient, torch::Tensor(), gradient.view({1, numel}).repeat({3, 1}).t()});
      for (const double order : {1.0, 2.0, 3.5, kInfinity}) {
        const double one = at::linalg_vector_norm(gradient, order, {}, false, torch::kFloat64).item<double>();
        const double expected = one * (std::isinf(order) ? 1 : std::pow(4, 1 / order));
        CHECK(gradient_norm(parallel, order) == doctest::Approx(expected).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE(
    "the norm and the gradients after clipping are those of torch's clip_grad_norm_, and every rank's bits equal") {
  for (const auto& [ranks, policy] :
       std::vector<std::pair<std::int64_t, Policy>>{{3, fsdp()}, {3, ddp()}, {4, hsdp(2)}}) {
    Shardable<Net> reference;
    backward(reference, {});
    const double expected = torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.1);
    std::map<std::string, at::Tensor> clipped;
    for (const auto& item : reference->named_parameters()) clipped[item.key()] = item.value().grad();
    std::vector<double> norms(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&, policy = policy](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelize(*net, groups_of(world, policy), policy);
      backward(net, world);
      const auto norm = clip_grad_norm_(parallel, 0.1);
      CHECK(norm.dim() == 0);
      CHECK((norm.device() == parallel.shards().front().device()));
      norms[static_cast<std::size_t>(world.rank)] = norm.item<double>();
      for (const auto& parameter : parallel.parameters()) {
        const auto& gradient = parameter.shard.grad();
        if (!gradient.defined()) continue;
        const auto whole = clipped.at(parameter.name).reshape({-1});
        CHECK(gradient.reshape({-1}).allclose(whole.narrow(0, parameter.offset, gradient.numel()), 1e-4, 1e-7));
      }
    });
    CHECK(norms.front() == doctest::Approx(expected).epsilon(1e-5));
    for (const double norm : norms) CHECK(norm == norms.front());
  }
}

TEST_CASE("a norm that is not finite is an error on all ranks if asked, and gradients like it otherwise") {
  on_ranks(2, [](const World& world) {
    auto parallel = made_by_hand(make_groups(world, {1, 2}), {torch::tensor({world.rank == 1 ? kInfinity : 1.0})});
    CHECK_THROWS_WITH_AS(clip_grad_norm_(parallel, 1, 2, true), doctest::Contains("gradient norm of order 2 is inf"),
                         c10::Error);
    CHECK(std::isinf(clip_grad_norm_(parallel, 1).item<double>()));
    CHECK(parallel.shards()[0].grad().isnan().item<bool>() == (world.rank == 1));
  });
}

TEST_CASE("a norm of order zero is refused") {
  auto parallel = made_by_hand({}, {torch::ones({1})});
  CHECK_THROWS_WITH_AS(gradient_norm(parallel, 0), doctest::Contains("the norm type is 0"), c10::Error);
}

TEST_CASE("finite gradients and losses are reported as such") {
  after_backward(2, fsdp(), [](Parallel& parallel, auto&) {
    CHECK_FALSE(find_nonfinite(parallel, 0));
    CHECK_FALSE(find_nonfinite(parallel, 0, torch::ones({})));
  });
}

TEST_CASE("NaN from one rank's input is traced to unit, rank and step on all ranks") {
  for (const auto& policy : {fsdp(), ddp()}) {
    on_ranks(2, [&](const World& world) {
      Shardable<Net> net;
      auto parallel = parallelize(*net, make_groups(world, make_mesh(policy, 2)), policy);
      const auto loss = backward(net, world, world.rank == 1 ? kNan : 1);
      const auto found = find_nonfinite(parallel, 7, loss);
      REQUIRE(found);
      CHECK(found->step == 7);
      CHECK(found->rank == 1);
      CHECK(found->loss);
      REQUIRE(found->parameter);
      CHECK(found->unit.empty());
      CHECK(found->message() == "step 7: the loss of rank 1 is not finite; the gradient of " + *found->parameter +
                                    " in the root unit is not finite");
      // Without the loss a reduced gradient cannot tell.
      CHECK(find_nonfinite(parallel, 7)->message().ends_with("is not finite on rank 0"));
    });
  }
}

TEST_CASE("one bad element is traced to its parameter, unit and the rank that holds it") {
  std::vector<std::string> messages(3);
  std::int64_t holder = -1;
  on_ranks(3, [&](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, make_groups(world, make_mesh(fsdp(), 3)), fsdp());
    backward(net, world);
    for (const auto& parameter : parallel.parameters()) {
      const auto numel = torch::ones(parameter.sizes).numel();
      const bool has_last = parameter.offset + parameter.shard.numel() == numel && parameter.shard.numel() > 0;
      if (parameter.name != "layer1.down.weight" || !has_last) continue;
      parameter.shard.grad().view({-1})[-1] = kInfinity;
      holder = world.rank;
    }
    messages[static_cast<std::size_t>(world.rank)] = find_nonfinite(parallel, 3).value().message();
  });
  for (const auto& message : messages) {
    CHECK(message ==
          "step 3: the gradient of layer1.down.weight in unit layer1 is not finite on rank " + std::to_string(holder));
  }
}
