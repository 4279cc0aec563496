// SPDX-License-Identifier: Apache-2.0
// flat_param.hpp, unit.hpp, shardable.hpp and parallelize.hpp: when parameters have memory, what keeps its identity,
// what is refused. parity_test.cpp compares numbers; here is what they would not show.
// Each case says over how many ranks it runs.
#include "tests/train/fixture.hpp"

#include <set>

using namespace sealift::test;

namespace {

/// The gradient of the shard named `name`.
at::Tensor gradient(const Parallel& parallel, const std::string& name) {
  for (const auto& shard : parallel.named_shards()) {
    if (shard.name == name) return shard.tensor.grad();
  }
  FAIL("no shard named ", name);
  return {};
}

/// A block over a given weight.
class GivenImpl : public torch::nn::Module {
 public:
  explicit GivenImpl(const at::Tensor& weight) : weight_(register_parameter("weight", weight)) {}
  at::Tensor forward(const at::Tensor& x) { return torch::linear(x, weight_); }

 private:
  at::Tensor weight_;
};
TORCH_MODULE(Given);

class PairImpl : public torch::nn::Module {
 public:
  PairImpl(const at::Tensor& left, const at::Tensor& right) {
    register_module("left", Shardable<Given>(left));
    register_module("right", Shardable<Given>(right));
  }
  at::Tensor forward(const at::Tensor& x) { return x; }
};
TORCH_MODULE(Pair);

/// One matrix, used depending on the input, and outputs of several kinds.
class ChoosyImpl : public torch::nn::Module {
 public:
  ChoosyImpl() : a_(register_module("a", torch::nn::Linear(4, 4))), b_(register_module("b", torch::nn::Linear(4, 4))) {
    fill(*this);
  }
  std::tuple<at::Tensor, std::vector<at::Tensor>, std::optional<at::Tensor>> forward(const at::Tensor& x, bool use_b) {
    auto y = a_(x);
    return {y, {use_b ? b_(y) : y * 2}, std::nullopt};
  }

 private:
  torch::nn::Linear a_, b_;
};
TORCH_MODULE(Choosy);

}  // namespace

TEST_CASE("a Shardable block is a plain block until a strategy is applied") {
  Shardable<Layer> held;
  Layer plain;
  fill(*held);
  fill(*plain);
  const auto x = torch::ones({2, 12});
  CHECK(held(x).equal(plain(x)));
  CHECK(held->forward(x).equal(plain(x)));
  CHECK(held->named_parameters().keys() == plain->named_parameters().keys());
}

TEST_CASE("parameters keep their identity and user handles see trained values, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    std::vector<at::TensorImpl*> before;
    for (const auto& parameter : net->parameters()) before.push_back(parameter.unsafeGetTensorImpl());
    const auto handle = net->tokens->weight;  // a user's own
    const auto start = handle.detach().clone();

    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
    loss_of(net).backward();
    optimizer.step();

    const auto parameters = net->parameters();
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(parameters[i].unsafeGetTensorImpl() == before[i]);
    const auto whole = parallel.gather_parameters();
    CHECK(handle.sizes() == start.sizes());
    CHECK_FALSE(handle.detach().equal(start));
  });
}

TEST_CASE("every row of a tied embedding is trained on every rank, with a vocabulary that does not divide") {
  for (const std::int64_t ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    on_ranks(ranks, [](const World& world) {
      Shardable<Net> net;
      const auto start = net->tokens->weight.detach().clone();
      auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2).weight_decay(0));
      for (int step = 0; step < 10; ++step) {
        optimizer.zero_grad();
        loss_of(net, step).backward();
        optimizer.step();
      }
      const auto whole = parallel.gather_parameters();
      const auto changed = (net->tokens->weight.detach() != start).any(1);
      CHECK(changed.sum().item<std::int64_t>() == NetImpl::kVocabulary);
    });
  }
}

TEST_CASE("a block has memory while it runs and none after, and no two blocks have it at once, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    const auto whole_bytes = [&] {  // of parameters that have memory, per block
      std::vector<std::size_t> bytes;
      for (auto& layer : net->layers) bytes.push_back(bytes_of(layer->parameters().front()));
      return bytes;
    };
    CHECK(whole_bytes() == std::vector<std::size_t>{0, 0, 0});
    CHECK(bytes_of(net->tokens->weight) == 0);

    int forwards = 0;
    for (std::size_t i = 0; i < net->layers.size(); ++i) {
      net->layers[i]->probe = [&, i] {
        ++forwards;
        const auto bytes = whole_bytes();
        for (std::size_t other = 0; other < bytes.size(); ++other) CHECK((bytes[other] > 0) == (other == i));
      };
    }
    const auto loss = loss_of(net);
    CHECK(forwards == 3);
    CHECK(whole_bytes() == std::vector<std::size_t>{0, 0, 0});
    CHECK(bytes_of(net->tokens->weight) > 0);  // the root stays for its backward, which comes first
    CHECK_THROWS_WITH(net->layers[0]->parameters()[0].data_ptr<float>(), doctest::Contains("are sharded"));

    loss.backward();
    CHECK(whole_bytes() == std::vector<std::size_t>{0, 0, 0});
    CHECK(bytes_of(net->tokens->weight) == 0);
    for (const auto& parameter : net->parameters())
      CHECK((!parameter.grad().defined() || bytes_of(parameter.grad()) == 0));
  });
}

TEST_CASE("a rank holds its share of the elements, and less than a cache line per parameter more, over 3 ranks") {
  on_ranks(3, [](const World& world) {
    Shardable<Net> net;
    std::int64_t trainable = 0;
    for (const auto& parameter : net->parameters()) trainable += parameter.requires_grad() ? parameter.numel() : 0;
    auto groups = groups_of(world, fsdp());
    auto parallel = parallelize(*net, groups, fsdp());
    auto held = torch::zeros({1}, torch::kInt64);
    for (const auto& shard : parallel.shards()) held += shard.numel();
    CHECK(held.item<std::int64_t>() < trainable / 2);
    groups.world.all_reduce(held).wait();
    CHECK(held.item<std::int64_t>() == trainable);
  });
}

TEST_CASE("evaluation without gradients leaves nothing gathered, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    {
      at::NoGradGuard no_grad;
      loss_of(net);
    }
    for (const auto& parameter : net->parameters()) CHECK(bytes_of(parameter) == 0);
    loss_of(net).backward();
  });
}

TEST_CASE("a forward after a step uses the stepped values even when the root was still gathered, over 2 ranks") {
  const auto loss_after = [](const World& world, const Policy& policy) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    torch::optim::SGD optimizer(parallel.shards(), torch::optim::SGDOptions(1.0));
    loss_of(net).backward();
    loss_of(net);  // for a log: recorded, never used in a backward
    optimizer.step();
    return loss_of(net).item<double>();
  };
  const double expected = loss_after({}, {.method = ParallelMethod::None});
  on_ranks(2, [&](const World& world) { CHECK(loss_after(world, fsdp()) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("parameters that no rank used get no gradient and keep their values, over 2 ranks") {
  for (const auto method : {ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
    on_ranks(2, [&](const World& world) {
      const Policy policy{.method = method};
      Shardable<Net> net;
      const auto start = net->layers[0]->named_parameters()["idle.weight"].detach().clone();
      auto parallel = parallelize(*net, groups_of(world, policy), policy);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));  // decays what has a gradient
      loss_of(net).backward();
      optimizer.step();
      CHECK_FALSE(gradient(parallel, "layer0.idle.weight").defined());  // inside a unit that was used
      CHECK_FALSE(gradient(parallel, "spare.up.weight").defined());     // a whole unit
      CHECK(gradient(parallel, "layer0.up.weight").defined());
      const auto whole = parallel.gather_parameters();
      CHECK(net->layers[0]->named_parameters()["idle.weight"].detach().equal(start));
    });
  }
}

TEST_CASE("a parameter that one rank used gets the mean on all, over 2 ranks; outputs may be nested") {
  const auto weight_gradient = [](bool use_b) {
    Choosy plain;
    const auto [y, list, none] = plain(torch::ones({2, 4}), use_b);
    list[0].sum().backward();
    return plain->named_parameters()["b.weight"].grad();
  };
  const auto expected = weight_gradient(true) / 2;
  CHECK_FALSE(weight_gradient(false).defined());
  for (const auto method : {ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
    on_ranks(2, [&](const World& world) {
      const Policy policy{.method = method, .find_unused_parameters = true};
      Shardable<Choosy> model;
      auto parallel = parallelize(*model, groups_of(world, policy), policy);
      const auto [y, list, none] = model(torch::ones({2, 4}), world.rank == 0);
      list[0].sum().backward();
      const auto mine = gradient(parallel, "b.weight").flatten();
      for (const auto& parameter : parallel.parameters()) {
        if (parameter.name != "b.weight") continue;
        CHECK(mine.allclose(expected.flatten().narrow(0, parameter.offset, parameter.shard.numel())));
      }
    });
  }
}

TEST_CASE("two forwards may be followed by their two backwards, over 2 ranks") {
  const auto gradient_sum = [](const World& world, const Policy& policy) {
    Shardable<Net> net;
    auto groups = groups_of(world, policy);
    auto parallel = parallelize(*net, groups, policy);
    const auto first = loss_of(net, 0), second = loss_of(net, 1);
    second.backward();
    first.backward();
    return gradient_norm(parallel);
  };
  const double expected = gradient_sum({}, {.method = ParallelMethod::None});
  on_ranks(2,
           [&](const World& world) { CHECK(gradient_sum(world, fsdp()) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("a forward that runs inside a block's backward leaves the block gathered for it, over 2 ranks") {
  const auto norm = [](const World& world, const Policy& policy, bool again) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    const auto x = torch::ones({2, 12}, torch::requires_grad());
    const auto y = net->layers[1](x);
    y.register_hook([&](const at::Tensor&) {
      at::NoGradGuard no_grad;
      if (again) net->layers[1](x);
    });
    y.square().sum().backward();
    return gradient_norm(parallel);
  };
  const double expected = norm({}, {.method = ParallelMethod::None}, false);
  on_ranks(2, [&](const World& world) { CHECK(norm(world, fsdp(), true) == doctest::Approx(expected).epsilon(1e-5)); });
}

TEST_CASE("a step after a forward and a backward that threw is right, over 2 ranks") {
  const auto norm = [](const World& world, const Policy& policy, bool fail) {
    Shardable<Net> net;
    auto parallel = parallelize(*net, groups_of(world, policy), policy);
    if (fail) {
      net->layers[1]->probe = [] { throw std::runtime_error("in forward"); };
      CHECK_THROWS_WITH(loss_of(net), "in forward");
      net->layers[1]->probe = nullptr;
      // Throws when the last block's backward asks for the gradient of the one before.
      auto loss = loss_of(net);
      auto hidden = torch::ones({2, 12}, torch::requires_grad());
      hidden.register_hook([](const at::Tensor&) { throw std::runtime_error("in backward"); });
      CHECK_THROWS_WITH((net->layers[2](hidden).sum() + net->layers[1](hidden).sum()).backward(), "in backward");
      for (const auto& shard : parallel.shards()) shard.mutable_grad().reset();
    }
    loss_of(net).backward();
    return gradient_norm(parallel);
  };
  const double expected = norm({}, {.method = ParallelMethod::None}, false);
  on_ranks(2, [&](const World& world) {
    const double got = norm(world, fsdp(), true);
    CHECK(std::isfinite(got));
    CHECK(got >= expected * (1 - 1e-5));
  });
}

TEST_CASE("all ranks start from rank 0's values, over 3 ranks") {
  on_ranks(3, [](const World& world) {
    Shardable<Net> reference(0.0);
    Shardable<Net> net(static_cast<double>(world.rank));
    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    const auto whole = parallel.gather_parameters();
    const auto expected = reference->parameters(), got = net->parameters();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].detach().equal(expected[i].detach()));
  });
}

TEST_CASE("shards are named as parameters are, so that weight-decay groups survive") {
  Shardable<Net> net;
  auto parallel = parallelize(*net, make_groups({}, {}), {.method = ParallelMethod::Ddp});
  std::set<std::string> names, expected;
  for (const auto& shard : parallel.named_shards()) names.insert(shard.name);
  for (const auto& item : net->named_parameters()) {
    if (item.value().requires_grad()) expected.insert(item.key());
  }
  CHECK(names == expected);
}

TEST_CASE("an optimizer that was made before parallelize is refused, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Net> net;
    torch::optim::AdamW early(net->parameters(), torch::optim::AdamWOptions(1e-2));
    auto parallel = parallelize(*net, groups_of(world, fsdp()), fsdp());
    CHECK_THROWS_WITH(parallel.check_optimizer(early), doctest::Contains("make the optimizer after parallelize()"));
    torch::optim::AdamW late(parallel.shards(), torch::optim::AdamWOptions(1e-2));
    parallel.check_optimizer(late);
  });
}

TEST_CASE("a weight that is tied across two units is refused by both names") {
  const auto weight = torch::ones({4, 4});
  Shardable<Pair> pair(weight, weight);
  CHECK_THROWS_WITH(parallelize(*pair, make_groups({}, {}), fsdp()),
                    doctest::Contains("'left.weight' and 'right.weight' are tied but lie in units 'left' and 'right'"));
  // The remedy works: in one unit they may be tied.
  const auto parallel = parallelize(*pair, make_groups({}, {}), {.method = ParallelMethod::Fsdp, .wrap = root_only()});
  CHECK(parallel.shards().size() == 1);
}

TEST_CASE("a plain module, a second parallelize and groups of another mesh are refused") {
  Net plain;
  CHECK_THROWS_WITH(parallelize(*plain, make_groups({}, {}), fsdp()), doctest::Contains("hold it in Shardable<"));
  Shardable<Net> net;
  const auto parallel = parallelize(*net, make_groups({}, {}), fsdp());
  CHECK_THROWS_WITH(parallelize(*net, make_groups({}, {}), fsdp()), doctest::Contains("was parallelized before"));
  on_ranks(2, [](const World& world) {
    Shardable<Net> other;
    auto groups = make_groups(world, {2, 1});
    groups.world.barrier();  // a rank that ends while the other connects breaks it
    CHECK_THROWS_WITH(parallelize(*other, groups, fsdp()), doctest::Contains("groups are 2x1"));
  });
}

TEST_CASE("ranks that built different models are told so on every rank, before anything hangs, over 2 ranks") {
  on_ranks(2, [](const World& world) {
    Shardable<Given> model(torch::ones({4, 4 + world.rank}));
    CHECK_THROWS_WITH(parallelize(*model, groups_of(world, fsdp()), fsdp()),
                      doctest::Contains("same model on every rank"));
    CHECK(bytes_of(model->parameters()[0]) > 0);  // left as it was
  });
}

TEST_CASE("a sparse gradient is refused by the parameter's name, over 2 ranks") {
  for (const auto method : {ParallelMethod::Ddp, ParallelMethod::Fsdp}) {
    on_ranks(2, [&](const World& world) {
      const Policy policy{.method = method};
      Shardable<torch::nn::Embedding> model(torch::nn::EmbeddingOptions(4, 4).sparse(true));
      const auto parallel = parallelize(*model, groups_of(world, policy), policy);
      CHECK_THROWS_WITH(model(torch::arange(4)).sum().backward(),
                        doctest::Contains("parameter weight has a sparse gradient"));
    });
  }
}
