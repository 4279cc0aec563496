// SPDX-License-Identifier: Apache-2.0
// Recomputation against the plain call: the same numbers, from less memory, alone and with units in or around it.
// Memory is counted by a reporter that LibTorch's allocator calls, not by the system.
// The model has a tied head, so that a weight is used inside a body and outside of it in one backward.
#include "tests/train/fixture.hpp"

#include <c10/util/ThreadLocalDebugInfo.h>

using namespace sealift::test;

namespace {

/// Bytes of CPU tensors alive on this thread, counted from zero.
class LiveBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t alloc_size, std::size_t, std::size_t, c10::Device) override {
    bytes += alloc_size;
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t bytes = 0;
};

/// Bytes that `make` keeps alive as long as its result lives.
template <class Make>
std::int64_t kept_bytes(Make make) {
  const auto live = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
  const auto result = make();
  return live->bytes;
}

at::Tensor wave(std::vector<std::int64_t> shape) {
  return torch::sin(torch::arange(torch::ones(shape).numel()) * 0.7).view(shape);
}

/// Gradients of copies of `inputs` by the sum of squares of what `forward` returns for them.
template <class Forward>
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& inputs, Forward forward) {
  std::vector<at::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(input.requires_grad()));
  forward(leaves).square().sum().backward();
  std::vector<at::Tensor> result;
  for (const auto& leaf : leaves) result.push_back(leaf.grad());
  return result;
}

enum class Where { Nowhere, Inside, Around, Both };

bool is_inside(Where where) {
  return where == Where::Inside || where == Where::Both;
}
bool is_around(Where where) {
  return where == Where::Around || where == Where::Both;
}

/// Every parameter is used, so that a unit's last gradient closes it.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl()
      : up_(register_module("up", torch::nn::Linear(12, 15))),
        down_(register_module("down", torch::nn::Linear(15, 12))) {}

  at::Tensor forward(const at::Tensor& x) {
    const auto inner = [this](const at::Tensor& y) { return down_(torch::tanh(up_(y))); };
    return x + (is_inside(where) ? recompute(inner, x) : inner(x));
  }

  Where where = Where::Nowhere;

 private:
  torch::nn::Linear up_, down_;
};
TORCH_MODULE(Block);

class TiedImpl : public torch::nn::Module {
 public:
  TiedImpl() : tokens(register_module("tokens", torch::nn::Embedding(NetImpl::kVocabulary, 12))) {
    for (std::int64_t i = 0; i < 3; ++i) {
      blocks.push_back(register_module("block" + std::to_string(i), Shardable<Block>()));
    }
    fill(*this);
  }

  void recompute_at(Where place) {
    where = place;
    for (auto& block : blocks) block->where = place;
  }

  at::Tensor forward(const at::Tensor& ids) {
    auto hidden = tokens(ids);
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      for (auto& block : blocks) {
        const auto call = [block](const at::Tensor& x) mutable { return block(x); };
        hidden = is_around(where) ? recompute(call, hidden) : block(hidden);
      }
    }
    const auto head = [this](const at::Tensor& x) { return torch::linear(x, tokens->weight); };
    return where == Where::Nowhere ? head(hidden) : recompute(head, hidden);
  }

  torch::nn::Embedding tokens;
  std::vector<Shardable<Block>> blocks;
  Where where = Where::Nowhere;
  std::int64_t repeats = 1;
};
TORCH_MODULE(Tied);

struct Run {
  std::vector<double> losses;
  TrafficReport traffic;
};

Run train_tied(std::int64_t ranks, const Policy& policy, Where where, std::int64_t repeats = 1) {
  Run run;
  on_ranks(ranks, [&](const World& world) {
    auto groups = make_groups(world, make_mesh(policy, world.size));
    Shardable<Tied> net;
    net->recompute_at(where);
    net->repeats = repeats;
    auto parallel = parallelize(*net, groups, policy);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
    *groups.traffic = {};
    const auto rows = kBatch / world.size;
    auto losses = torch::zeros({6}, torch::kFloat64);
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      optimizer.zero_grad();
      const auto [ids, targets] = batch_of(step);
      const auto loss = torch::nn::functional::cross_entropy(net(ids.narrow(0, world.rank * rows, rows)),
                                                             targets.narrow(0, world.rank * rows, rows));
      losses[step] = loss.detach().to(torch::kFloat64);
      loss.backward();
      optimizer.step();
    }
    const auto traffic = *groups.traffic;
    groups.world.all_reduce(losses).wait();
    if (world.rank != 0) return;
    for (std::int64_t step = 0; step < losses.numel(); ++step) {
      run.losses.push_back(losses[step].item<double>() / static_cast<double>(world.size));
    }
    run.traffic = traffic;
  });
  return run;
}

void check_losses(const Run& got, const Run& expected) {
  REQUIRE(got.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(got.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-5));
  }
}

const auto kEverywhere = {Where::Inside, Where::Around, Where::Both};

std::string name_of(Where where) {
  return where == Where::Inside ? "inside" : where == Where::Around ? "around" : "both";
}

}  // namespace

TEST_CASE("a recomputed body gives every bit of the plain call, for inputs with and without gradients") {
  const auto body = [](const at::Tensor& a, const at::Tensor& b, double factor) { return (a * b).tanh() * factor; };
  const std::vector<at::Tensor> inputs{wave({4, 3}).requires_grad_(), wave({4, 3}) + 1};
  const auto expected = gradients(inputs, [&](auto& x) { return body(x[0], x[1], 2.5); });
  const auto got = gradients(inputs, [&](auto& x) { return recompute(body, x[0], x[1], 2.5); });
  CHECK(got[0].equal(expected[0]));
  CHECK_FALSE(got[1].defined());
}

TEST_CASE("parameters inside the body get gradients even if no input needs one") {
  torch::nn::Linear layer(3, 2);
  const auto x = wave({4, 3});
  layer(x).square().sum().backward();
  const auto expected = layer->weight.grad().clone();
  layer->zero_grad();
  recompute([layer](const at::Tensor& input) mutable { return layer(input); }, x).square().sum().backward();
  CHECK(layer->weight.grad().equal(expected));
}

TEST_CASE("tuples, vectors and optionals of tensors go in and come out") {
  const auto body = [](const std::vector<at::Tensor>& list, const std::optional<at::Tensor>& maybe,
                       const std::string& text, const at::Tensor& none) {
    TORCH_CHECK(text == "text" && !none.defined());
    return std::make_tuple(list[0] * list[1], std::vector<at::Tensor>{maybe->exp(), at::Tensor()});
  };
  const std::vector<at::Tensor> inputs{wave({3}).requires_grad_(), wave({3}) + 2, wave({3}).requires_grad_()};
  const auto add_up = [](const auto& outputs) {
    CHECK_FALSE(std::get<1>(outputs)[1].defined());
    return std::get<0>(outputs) + std::get<1>(outputs)[0];
  };
  const auto call = [&](auto run) {
    return gradients(inputs, [&](auto& x) {
      return add_up(
          run(body, std::vector<at::Tensor>{x[0], x[1]}, std::optional(x[2]), std::string("text"), at::Tensor()));
    });
  };
  const auto expected = call([](auto body, auto... x) { return body(x...); });
  const auto got = call([](auto body, auto... x) { return recompute(body, x...); });
  CHECK(got[0].equal(expected[0]));
  CHECK(got[2].equal(expected[2]));
}

TEST_CASE("an output that is not used, not differentiable or an input itself does no harm") {
  const std::vector<at::Tensor> inputs{wave({5}).requires_grad_()};
  const auto got = gradients(inputs, [](auto& x) {
    const auto [unused, index, same, used] =
        recompute([](const at::Tensor& y) { return std::make_tuple(y.exp(), y.argmax(), y, y * 3); }, x[0]);
    CHECK((index.scalar_type() == torch::kInt64));
    CHECK_FALSE(index.requires_grad());
    return same + used;
  });
  CHECK(got[0].allclose(inputs[0].detach() * 32));
}

TEST_CASE("without grad mode it is a plain call") {
  const at::NoGradGuard no_grad;
  std::int64_t calls = 0;
  const auto x = wave({3}).requires_grad_();
  const auto y = recompute([&](const at::Tensor& input) { return ++calls, input * 2; }, x);
  CHECK(calls == 1);
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("backward runs the body once more, and nested bodies as often as they are deep") {
  std::int64_t outer = 0, inner = 0;
  const auto x = wave({3}).requires_grad_();
  const auto body = [&](const at::Tensor& input) {
    ++outer;
    return recompute([&](const at::Tensor& y) { return ++inner, y.sin(); }, input * 2).exp();
  };
  recompute(body, x).sum().backward();
  CHECK(outer == 2);
  CHECK(inner == 3);
  const auto doubled = x.detach() * 2;
  CHECK(x.grad().allclose(doubled.sin().exp() * doubled.cos() * 2));
}

TEST_CASE("dropout drops the same elements again, and numbers drawn later are those of the plain call") {
  const auto x = torch::ones({1000}).requires_grad_();
  torch::manual_seed(5);
  const auto y = recompute([](const at::Tensor& input) { return torch::dropout(input, 0.5, true); }, x);
  const auto next = torch::rand({4});
  y.sum().backward();
  CHECK(x.grad().equal(y.detach()));
  const auto after = torch::rand({4});
  torch::manual_seed(5);
  CHECK(torch::dropout(x, 0.5, true).equal(y));
  CHECK(torch::rand({4}).equal(next));
  CHECK(torch::rand({4}).equal(after));
}

TEST_CASE("the graph keeps the inputs only") {
  const auto x = wave({1000, 10}).requires_grad_();
  const auto deep = [](at::Tensor y) {
    for (int i = 0; i < 8; ++i) y = (y * 1.1).tanh().exp();
    return y.sum();
  };
  const auto plain = kept_bytes([&] { return deep(x); });
  const auto recomputed = kept_bytes([&] { return recompute(deep, x); });
  CHECK(plain > 8 * 40'000);
  CHECK(recomputed < 40'000);
}

TEST_CASE("what the body made is gone after its backward") {
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages;
  const auto x = wave({50}).requires_grad_();
  auto loss = recompute(
      [&](const at::Tensor& y) {
        const auto middle = y.exp();
        storages.push_back(middle.storage().getWeakStorageImpl());
        return middle.sin().sum();
      },
      x);
  CHECK(storages.at(0).expired());
  loss.backward();
  REQUIRE(storages.size() == 2);
  CHECK(storages[1].expired());
}

TEST_CASE("a body that does another thing in backward is an error that says what differs") {
  const auto x = wave({3}).requires_grad_();
  std::int64_t calls = 0;
  auto shape = recompute([&](const at::Tensor& y) { return y.repeat({++calls}); }, x).sum();
  CHECK_THROWS_WITH_AS(shape.backward(), doctest::Contains("output 0 has shape [6] in backward and [3] in forward"),
                       c10::Error);
  calls = 0;
  auto count = recompute(
      [&](const at::Tensor& y) { return std::vector<at::Tensor>(static_cast<std::size_t>(++calls), y * 2); }, x);
  CHECK_THROWS_WITH_AS(count[0].sum().backward(), doctest::Contains("made 2 tensors in backward and 1 in forward"),
                       c10::Error);
}

TEST_CASE("autograd::grad, create_graph and a body without tensors are refused with the remedy") {
  const auto x = wave({3}).requires_grad_();
  const auto make = [&] { return recompute([](const at::Tensor& y) { return y.exp(); }, x).sum(); };
  CHECK_THROWS_WITH_AS(torch::autograd::grad({make()}, {x}), doctest::Contains("call backward() without inputs"),
                       c10::Error);
  CHECK_THROWS_WITH_AS(make().backward({}, std::nullopt, true), doctest::Contains("create_graph"), c10::Error);
  CHECK_THROWS_WITH_AS(recompute([](const at::Tensor&) { return 1; }, x), doctest::Contains("returned no tensor"),
                       c10::Error);
}

TEST_CASE("an input changed in place between forward and backward is an error") {
  const auto x = wave({3}).requires_grad_();
  auto input = x * 1;
  auto loss = recompute([](const at::Tensor& y) { return y.exp(); }, input).sum();
  input.mul_(2);
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("modified by an inplace operation"), c10::Error);
}

TEST_CASE("backward twice over a kept graph adds up") {
  const auto x = wave({3}).requires_grad_();
  auto loss = recompute([](const at::Tensor& y) { return y.exp(); }, x).sum();
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
  CHECK(x.grad().allclose(x.detach().exp() * 2));
}

TEST_CASE("a recomputed model trains as the plain one, on one process") {
  const auto expected = train_tied(1, {}, Where::Nowhere);
  CHECK(expected.losses.back() < 0.95 * expected.losses.front());
  for (const auto where : kEverywhere) {
    CAPTURE(name_of(where));
    check_losses(train_tied(1, {}, where), expected);
  }
}

TEST_CASE("bodies inside units, around them and both train as the plain model does, tied weights too") {
  const auto expected = train_tied(1, {}, Where::Nowhere);
  for (const auto& [ranks, policy] :
       std::vector<std::pair<std::int64_t, Policy>>{{1, fsdp()}, {2, fsdp()}, {4, fsdp()}, {4, hsdp(2)}}) {
    CAPTURE(ranks);
    check_losses(train_tied(ranks, policy, Where::Nowhere), expected);
    for (const auto where : kEverywhere) {
      CAPTURE(name_of(where));
      check_losses(train_tied(ranks, policy, where), expected);
    }
  }
}

TEST_CASE("recomputation without resharding trains the same") {
  const auto expected = train_tied(1, {}, Where::Nowhere);
  auto policy = fsdp();
  policy.reshard_after_forward = false;
  for (const auto where : kEverywhere) {
    CAPTURE(name_of(where));
    check_losses(train_tied(2, policy, where), expected);
  }
}

TEST_CASE("blocks that are called twice and recomputed train the same") {
  const auto expected = train_tied(1, {}, Where::Nowhere, 2);
  for (const auto where : kEverywhere) {
    CAPTURE(name_of(where));
    check_losses(train_tied(2, fsdp(), where, 2), expected);
  }
}

TEST_CASE("a parameter that gets gradients from two backwards is reduced right: ddp and the root alone") {
  const auto once = train_tied(1, {}, Where::Nowhere);
  const auto twice = train_tied(1, {}, Where::Nowhere, 2);
  auto root_alone = fsdp();
  root_alone.wrap = root_only();
  for (const auto& policy : {ddp(), root_alone}) {
    CAPTURE(std::string(to_string(policy.method)));
    for (const auto where : kEverywhere) {
      CAPTURE(name_of(where));
      check_losses(train_tied(2, policy, where), once);
      check_losses(train_tied(2, policy, where, 2), twice);
    }
  }
}

TEST_CASE("inside units recomputation gathers nothing more, around them each unit once more") {
  const auto plain = train_tied(2, fsdp(), Where::Nowhere);
  CHECK(train_tied(2, fsdp(), Where::Inside).traffic.all_gather == plain.traffic.all_gather);
  // A rule that keeps a unit whole between its second forward and its backward would make this equal the above + 18.
  const auto around = train_tied(2, fsdp(), Where::Around);
  CHECK(around.traffic.all_gather.calls <= plain.traffic.all_gather.calls + 6 * 3);
}

namespace {

/// Uses its weight outside of a body and then inside, so that backward needs it again after the body's gradients.
class TwiceImpl : public torch::nn::Module {
 public:
  TwiceImpl() : weight_(register_parameter("weight", wave({12, 12}))) {}

  at::Tensor forward(const at::Tensor& x) {
    const auto use = [this](const at::Tensor& y) { return torch::mm(y, weight_).tanh(); };
    return recompute(use, use(x));
  }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(Twice);

class PairImpl : public torch::nn::Module {
 public:
  PairImpl()
      : first_(register_module("first", Shardable<Twice>())), second_(register_module("second", Shardable<Twice>())) {}
  at::Tensor forward(const at::Tensor& x) { return second_(first_(x)); }

 private:
  Shardable<Twice> first_, second_;
};
TORCH_MODULE(Pair);

double pair_norm(std::int64_t ranks, const Policy& policy) {
  double norm = 0;
  on_ranks(ranks, [&](const World& world) {
    Shardable<Pair> pair;
    auto parallel = parallelize(*pair, make_groups(world, make_mesh(policy, ranks)), policy);
    pair(wave({4, 12})).square().sum().backward();
    const double mine = gradient_norm(parallel);
    if (world.rank == 0) norm = mine;
  });
  return norm;
}

}  // namespace

TEST_CASE("a weight that is used outside of a body and inside keeps its values until both are done") {
  CHECK(pair_norm(2, fsdp()) == doctest::Approx(pair_norm(1, {})).epsilon(1e-5));
}

TEST_CASE("a Recomputed holder is a drop-in, may be a unit, and can be turned off per block") {
  at::manual_seed(3);
  Recomputed<torch::nn::Linear> layer(12, 12);
  const auto x = wave({4, 12});
  CHECK(layer(x).grad_fn()->name().find("RecomputeNode") != std::string::npos);
  layer->recomputes = false;
  CHECK(layer(x).grad_fn()->name() == "AddmmBackward0");
  layer->recomputes = true;
  layer(x).square().sum().backward();
  CHECK(layer->weight.grad().allclose(2 * torch::linear(x, layer->weight, layer->bias).t().mm(x), 1e-4, 1e-5));

  on_ranks(2, [&](const World& world) {
    Shardable<Recomputed<Layer>> unit;
    fill(*unit);
    auto parallel = parallelize(*unit, make_groups(world, make_mesh(fsdp(), 2)), fsdp());
    Layer plain;
    fill(*plain);
    const auto input = wave({4, 12});
    unit(input).square().sum().backward();
    plain->forward(input).square().sum().backward();
    double expected = 0;
    for (const auto& parameter : plain->parameters()) {
      if (parameter.grad().defined()) expected += parameter.grad().square().sum().item<double>();
    }
    CHECK(gradient_norm(parallel) == doctest::Approx(std::sqrt(expected)).epsilon(1e-5));
  });
}

TEST_CASE("what a recomputed body returned is freed before its backward begins") {
  auto returned = torch::empty({0}).storage().getWeakStorageImpl();
  int freed = 0;
  const auto x = wave({4, 3}).requires_grad_();
  const auto y = recompute(
      [&](const at::Tensor& input) {
        const auto inner = input * 2;
        if (inner.requires_grad()) inner.register_hook([&](const at::Tensor&) { freed += returned.expired(); });
        auto output = inner + 1;  // whose backward needs no values
        returned = output.storage().getWeakStorageImpl();
        return output;
      },
      x);
  y.sum().backward();
  CHECK(freed == 1);
  CHECK(x.grad().equal(torch::full({4, 3}, 2.0)));
}
