// SPDX-License-Identifier: Apache-2.0
// source.hpp and first_values.hpp: a model that is built without memory starts, on any mesh, with the values that it
// would have on one process, and trains as that.
// The kinds of sources side by side; what safetensors adds is in checkpoint/safetensors_source_test.cpp.
#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"

using namespace sealift::test;

namespace {

/// The fixture's net with buffers: a table that is computed, a statistic that is trained, one with no value of its own.
class BuffersImpl : public NetImpl {
 public:
  explicit BuffersImpl(double phase = 0) : NetImpl(phase) {
    register_buffer("table", torch::cos(torch::arange(6, torch::kFloat)));
    register_buffer("mean", torch::zeros({5}));
    register_buffer("empty", torch::empty({3}).fill_(phase));
  }
};
TORCH_MODULE(Buffers);

using Values = std::map<std::string, at::Tensor>;

Values values_of(const torch::nn::Module& module) {
  Values values;
  for (const auto& item : module.named_parameters()) values[item.key()] = item.value().detach().clone();
  for (const auto& item : module.named_buffers()) values[item.key()] = item.value().detach().clone();
  return values;
}

void init(const std::string& name, at::Tensor tensor, const at::Generator& random) {
  if (!tensor.is_floating_point()) return void(tensor.zero_());
  tensor.normal_(0, 0.3, random);
  if (name.ends_with("bias")) tensor.mul_(0.1);
}

struct Way {
  const char* name;
  std::int64_t ranks;
  Policy policy;
};

std::vector<Way> ways() {
  auto mixed = fsdp();
  mixed.precision = parse_precision("mixed");
  auto mixed_ddp = ddp();
  mixed_ddp.precision = parse_precision("mixed");
  auto offload = fsdp();
  offload.offload.parameters = true;
  auto part = fsdp();
  part.wrap = either(by_path("layer1", {.replicate = true}), by_block());
  auto ignoring = fsdp();
  ignoring.ignored_parameters = {"layer0.up.*"};
  auto root = fsdp();
  root.wrap = root_only();
  return {{"none", 1, {.method = ParallelMethod::None}},
          {"ddp", 2, ddp()},
          {"ddp mixed", 2, mixed_ddp},
          {"fsdp of one rank", 1, fsdp()},
          {"fsdp", 2, fsdp()},
          {"fsdp of three ranks", 3, fsdp()},
          {"fsdp mixed", 4, mixed},
          {"fsdp offload", 2, offload},
          {"fsdp, one unit replicated", 2, part},
          {"fsdp, some ignored", 2, ignoring},
          {"fsdp, the root alone", 3, root},
          {"hsdp", 4, hsdp(2)}};
}

/// Starts a model on every rank, `on_meta` where it says so, and compares what each rank holds with `expected`.
void check_start(const Way& way, const Values& expected, at::ScalarType dtype,
                 const std::function<bool(std::int64_t)>& on_meta,
                 const std::function<std::unique_ptr<Source>()>& make_source) {
  CAPTURE(way.name);
  CAPTURE(dtype);
  std::atomic<int> compared = 0;
  on_ranks(way.ranks, [&](const World& world) {
    const auto groups = groups_of(world, way.policy);
    std::optional<MetaDevice> meta;
    if (on_meta(world.rank)) meta.emplace();
    Shardable<Buffers> net(world.rank == 0 ? 0.0 : 0.5);
    meta.reset();
    net->to(dtype);
    const auto source = make_source();
    auto parallel = parallelize(*net, groups, way.policy, source.get());

    for (const auto& [name, sizes, offset, shard, replicated, stored, copies, copy] : parallel.parameters()) {
      INFO(name);
      CHECK(shard.detach().reshape({-1}).equal(
          expected.at(name).to(dtype).reshape({-1}).narrow(0, offset, shard.numel())));
      CHECK(shard.requires_grad() == !name.ends_with("frozen"));
      ++compared;
    }
    const auto whole = parallel.gather_parameters();
    for (const auto& [name, value] : values_of(*net)) {
      INFO(name);
      CHECK(value.is_cpu());
      CHECK(value.equal(expected.at(name).to(dtype).to(value.scalar_type())));
    }
  });
  CHECK(compared > 20);
}

/// The kinds of sources, each with the ranks that build without memory and the values of one process.
template <class Check>
void for_each_kind(const Check& check) {
  const auto never = [](std::int64_t) { return false; };
  const auto always = [](std::int64_t) { return true; };
  const auto expected = values_of(*Buffers());
  const auto none = [] { return std::unique_ptr<Source>(); };
  check("rank 0's memory", expected, never, none);
  check(
      "rank 0's memory, the others without", expected, [](std::int64_t rank) { return rank > 0; }, none);

  const TempDir folder;
  auto stored = expected;
  stored["mean"] = torch::arange(5, torch::kFloat);  // as after training; rank 0's own is zero
  stored.erase("table");
  write_tensor_file(folder / "model.safetensors", TensorList(stored.begin(), stored.end()), {});
  stored["table"] = expected.at("table");
  const auto files = [&]() -> std::unique_ptr<Source> { return std::make_unique<SafetensorsSource>(folder.path()); };
  check("files", stored, always, files);
  check("files, over other values", stored, never, files);

  Buffers one;  // the values of one process, made by hand
  for (auto& item : one->named_parameters()) {
    at::NoGradGuard no_grad;
    InitFunction(init, 7).read(item.key(), item.value().sizes(), 0, item.value().detach().view({-1}));
  }
  auto computed = values_of(*one);
  computed["empty"] = torch::zeros({3});
  InitFunction(init, 7).read("empty", {3}, 0, computed["empty"]);
  check("a function", computed, always,
        []() -> std::unique_ptr<Source> { return std::make_unique<InitFunction>(init, 7); });
}

}  // namespace

TEST_CASE("every source gives every mesh the values of one process") {
  for_each_kind([](const char* kind, const Values& expected, const auto& on_meta, const auto& make_source) {
    CAPTURE(kind);
    for (const auto& way : ways()) {
      // What is ignored is not synchronized, unless a rank waits for it.
      if (kind == std::string("rank 0's memory") && !way.policy.ignored_parameters.empty()) continue;
      check_start(way, expected, at::kFloat, on_meta, make_source);
    }
  });
}

TEST_CASE("a model of another dtype gets the files' values converted") {
  for_each_kind([](const char* kind, const Values& expected, const auto& on_meta, const auto& make_source) {
    if (std::string(kind) != "files") return;
    for (const auto dtype : {at::kBFloat16, at::kHalf, at::kDouble}) {
      check_start({"fsdp", 2, fsdp()}, expected, dtype, on_meta, make_source);
      check_start({"ddp", 2, ddp()}, expected, dtype, on_meta, make_source);
    }
  });
}

TEST_CASE("a model that was built without memory trains as one process does") {
  const TempDir folder;
  Net plain;
  TensorList tensors;
  for (const auto& item : plain->named_parameters()) tensors.emplace_back(item.key(), item.value().detach());
  write_tensor_file(folder / "model.safetensors", tensors, {});
  for (const auto& way : ways()) {
    if (way.policy.precision.param_dtype || !way.policy.ignored_parameters.empty()) continue;
    CAPTURE(way.name);
    on_ranks(way.ranks, [&](const World& world) {
      auto groups = groups_of(world, way.policy);
      std::optional<MetaDevice> meta(std::in_place);
      Shardable<Net> net;
      meta.reset();
      SafetensorsSource source(folder.path());
      auto parallel = parallelize(*net, groups, way.policy, &source);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(kLearningRate));
      const auto rows = kBatch / world.size;
      for (std::int64_t step = 0; step < 10; ++step) {
        optimizer.zero_grad();
        const auto [ids, targets] = batch_of(step);
        auto loss = torch::nn::functional::cross_entropy(net(ids.narrow(0, world.rank * rows, rows)),
                                                         targets.narrow(0, world.rank * rows, rows));
        loss.backward();
        optimizer.step();
        auto mean = loss.detach().to(torch::kFloat64).view({1}) / world.size;
        groups.world.all_reduce(mean).wait();
        CHECK(mean.item<double>() ==
              doctest::Approx(one_process().losses[static_cast<std::size_t>(step)]).epsilon(1e-5));
      }
    });
  }
}

TEST_CASE("an init function's values depend on seed and name, and on no generator of the process") {
  const auto make = [](std::uint64_t seed, const std::string& name, std::int64_t begin, std::int64_t numel) {
    InitFunction source(init, seed);
    auto out = torch::full({numel}, 9.0);
    source.read(name, {6, 7}, begin, out);
    return out;
  };
  torch::manual_seed(1);
  const auto before = at::detail::getDefaultCPUGenerator().get_state();
  const auto whole = make(3, "a.weight", 0, 42);
  CHECK(at::detail::getDefaultCPUGenerator().get_state().equal(before));
  torch::manual_seed(2);
  CHECK(make(3, "a.weight", 0, 42).equal(whole));
  CHECK(make(3, "a.weight", 11, 13).equal(whole.narrow(0, 11, 13)));
  CHECK(!make(4, "a.weight", 0, 42).equal(whole));
  CHECK(!make(3, "b.weight", 0, 42).equal(whole));
}

TEST_CASE("a source is asked for each element that a rank holds once, and for no other") {
  struct Asked final : Source {
    void read(const std::string& name, at::IntArrayRef, std::int64_t begin, at::Tensor out) override {
      out.zero_();
      ranges[name].emplace_back(begin, out.numel());
    }
    std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> ranges;
  };
  for (const auto& way : ways()) {
    CAPTURE(way.name);
    on_ranks(way.ranks, [&](const World& world) {
      std::optional<MetaDevice> meta(std::in_place);
      Shardable<Net> net;
      meta.reset();
      Asked source;
      auto parallel = parallelize(*net, groups_of(world, way.policy), way.policy, &source);
      std::size_t held = way.policy.ignored_parameters.empty() ? 0 : 2;
      for (const auto& parameter : parallel.parameters()) {
        if (parameter.shard.numel() == 0) continue;
        ++held;
        const auto& ranges = source.ranges[parameter.name];
        REQUIRE(ranges.size() == 1);
        CHECK(ranges.front() == std::pair(parameter.offset, parameter.shard.numel()));
      }
      CHECK(source.ranges.size() == held);
    });
  }
}

TEST_CASE("tensors that would get no values are refused on every rank before anything is changed") {
  const auto refused = [](std::int64_t ranks, const Policy& policy, auto on_meta, const char* text) {
    CAPTURE(text);
    on_ranks(ranks, [&](const World& world) {
      std::optional<MetaDevice> meta;
      if (on_meta(world.rank)) meta.emplace();
      Shardable<Buffers> net;
      meta.reset();
      const auto weight = net->tokens->weight;
      CHECK_THROWS_WITH(parallelize(*net, groups_of(world, policy), policy), doctest::Contains(text));
      CHECK(weight.is_meta() == on_meta(world.rank));
    });
  };
  const auto first = [](std::int64_t rank) { return rank == 0; };
  const auto second = [](std::int64_t rank) { return rank == 1; };
  auto own = fsdp();
  own.sync_module_states = false;
  refused(1, {.method = ParallelMethod::None}, first, "rank 0 has 26 tensors on the meta device");
  refused(2, fsdp(), first, "rank 0 has 26 tensors on the meta device");
  refused(2, ddp(), first, "rank 0 has 26 tensors on the meta device");
  refused(2, own, second, "rank 1 has 26 tensors on the meta device");

  const MetaDevice meta;
  Shardable<Net> net;
  CHECK_THROWS_WITH(parallelize(*net, Groups{}, fsdp()), doctest::Contains("a MetaDevice is alive"));
}
