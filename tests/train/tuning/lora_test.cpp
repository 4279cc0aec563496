// SPDX-License-Identifier: Apache-2.0
// Adapters: which projections get one, which values, what is trained and sent, and what is saved of them.
// That the numbers are PEFT's is in tuning_peer_test.py.

#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/tuning/in_vllm.hpp"
#include "trainer/tuning/peft_format.hpp"
#include "trainer/tuning/qlora.hpp"

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

constexpr std::int64_t kWidth = 20;

class MixerImpl : public torch::nn::Module {
 public:
  MixerImpl()
      : q(register_module("q_proj", Projection(kWidth, 24, true))),
        o(register_module("o_proj", Projection(24, kWidth, false))),
        gain(register_parameter("gain", torch::empty({kWidth}))) {}
  at::Tensor forward(const at::Tensor& x) { return x + o(torch::tanh(q(x * gain))); }
  Projection q, o;
  at::Tensor gain;
};
TORCH_MODULE(Mixer);

class StackImpl : public torch::nn::Module {
 public:
  explicit StackImpl(bool recomputed = false) : recomputed_(recomputed) {
    for (int i = 0; i < 3; ++i) layers.push_back(register_module("layer" + std::to_string(i), Shardable<Mixer>()));
    head = register_module("lm_head", Projection(kWidth, 7, false));
    fill(*this);
  }
  at::Tensor forward(at::Tensor x) {
    for (auto& layer : layers) {
      x = recomputed_ ? recompute([&layer](at::Tensor& input) { return layer(input); }, x) : layer(x);
    }
    return head(x);
  }
  std::vector<Shardable<Mixer>> layers;
  Projection head{nullptr};

 private:
  bool recomputed_;
};
TORCH_MODULE(Stack);

LoraOptions some_options() {
  return {.rank = 3, .alpha = 6, .target_modules = {"q_proj", "o_proj"}};
}

/// The values of a Stack, whichever the mesh, for models without memory.
class StackValues final : public Source {
 public:
  StackValues() {
    for (const auto& item : Stack()->named_parameters()) values_[item.key()] = item.value().detach().flatten();
  }
  void check(const std::vector<WantedTensor>& wanted) override {
    for (const auto& tensor : wanted)
      TORCH_CHECK(!tensor.required || values_.contains(tensor.name), "no values for ", tensor.name);
  }
  void read(const std::string& name, at::IntArrayRef, std::int64_t begin, at::Tensor out) override {
    out.copy_(values_.at(name).narrow(0, begin, out.numel()));
  }

 private:
  std::map<std::string, at::Tensor> values_;
};

/// Another value for every lora_B, the same on all ranks, so that adapters change something.
void stir(torch::nn::Module& model) {
  at::NoGradGuard no_grad;
  for (const auto& item : model.named_parameters()) {
    if (item.key().ends_with("lora_B.weight")) {
      auto tensor = item.value();
      tensor.copy_(torch::cos(torch::arange(tensor.numel()).view(tensor.sizes()) * 0.7) * 0.1);
    }
  }
}

at::Tensor loss_of(Shardable<Stack>& stack, const World& world, std::int64_t step) {
  const auto rows = 8 / world.size;
  const auto x = torch::cos(torch::arange(8 * kWidth).view({8, kWidth}) * (0.3 + static_cast<double>(step)));
  return stack(x.narrow(0, world.rank * rows, rows)).pow(2).mean();
}

std::vector<double> train_steps(Shardable<Stack>& stack, Parallel& parallel, const World& world,
                                torch::optim::Optimizer& optimizer, std::int64_t from, std::int64_t to) {
  auto losses = torch::zeros({to - from}, at::kDouble);
  for (auto step = from; step < to; ++step) {
    optimizer.zero_grad();
    const auto loss = loss_of(stack, world, step);
    loss.backward();
    optimizer.step();
    losses[step - from] = loss.detach().to(at::kDouble) / world.size;
  }
  parallel.groups().world.all_reduce(losses).wait();
  return {losses.const_data_ptr<double>(), losses.const_data_ptr<double>() + (to - from)};
}

std::map<std::string, at::Tensor> whole_values(torch::nn::Module& model, Parallel& parallel) {
  std::map<std::string, at::Tensor> values;
  const auto whole = parallel.gather_parameters();
  for (const auto& item : model.named_parameters()) values[item.key()] = item.value().detach().clone();
  return values;
}

}  // namespace

TEST_CASE("targets match as PEFT's do: by the last parts of a path; all-linear leaves the head out") {
  const auto adapted = [](std::vector<std::string> targets) {
    Stack stack;
    return add_lora(*stack, {.target_modules = std::move(targets)});
  };
  using Paths = std::vector<std::string>;
  CHECK(adapted({"q_proj"}) == Paths{"layer0.q_proj", "layer1.q_proj", "layer2.q_proj"});
  CHECK(adapted({"layer1.q_proj", "lm_head"}) == Paths{"layer1.q_proj", "lm_head"});
  CHECK(adapted({"all-linear"}).size() == 6);
  CHECK_THROWS_WITH_AS(
      adapted({"q_proj", "proj"}),
      doctest::Contains("'proj'; the model has no projection of this name; there are: lm_head, o_proj, "
                        "q_proj"),
      c10::Error);
  CHECK_THROWS_WITH_AS(adapted({"gain"}), doctest::Contains("'gain'; the model has no projection"), c10::Error);
  const auto matching = [](const std::string& expression) {
    Stack stack;
    return add_lora(*stack, {.target_regex = expression});
  };
  CHECK(matching("layer[02]\\.q_proj") == Paths{"layer0.q_proj", "layer2.q_proj"});
  CHECK_THROWS_WITH_AS(matching("q_proj"), doctest::Contains("a whole path is layer0.q_proj"), c10::Error);
  CHECK_THROWS_WITH_AS(matching("(q"), doctest::Contains("is no expression of ECMAScript's"), c10::Error);
  Stack twice;
  add_lora(*twice, some_options());
  CHECK_THROWS_WITH_AS(add_lora(*twice, some_options()), doctest::Contains("has an adapter already"), c10::Error);
}

TEST_CASE("patterns choose modules, ranks and scalings as PEFT's do, of several the first that matches") {
  LoraOptions options{.rank = 3, .alpha = 6, .target_modules = {"q_proj", "o_proj"}};
  options.patterns = {.ranks = {{"layer1.q_proj", 5}, {"layer[12].q_proj", 2}},
                      .alphas = {{"layer2.*", 12}},
                      .excluded = {"layer0.o_proj"},
                      .excluded_regex = ".*2.o_proj",
                      .layers = {},
                      .layer_names = {}};
  Stack stack;
  using Paths = std::vector<std::string>;
  CHECK(add_lora(*stack, options) == Paths{"layer0.q_proj", "layer1.q_proj", "layer1.o_proj", "layer2.q_proj"});
  std::map<std::string, std::pair<std::int64_t, double>> found;
  for (const auto& [path, adapter] : find_adapters(*stack)) {
    found[path] = {adapter->named_parameters()["lora_A.weight"].size(0), adapter->scaling()};
  }
  CHECK(found["layer0.q_proj"] == std::pair<std::int64_t, double>(3, 2));
  CHECK(found["layer1.q_proj"] == std::pair<std::int64_t, double>(5, 6.0 / 5));
  CHECK(found["layer2.q_proj"] == std::pair<std::int64_t, double>(2, 6));
  const auto refused = [](const LoraOptions& bad, const char* why) {
    Stack model;
    CHECK_THROWS_WITH_AS(add_lora(*model, bad), doctest::Contains(why), c10::Error);
  };
  options.patterns.ranks = {{"(q", 2}};
  refused(options, "rank_pattern '(q' is no expression of ECMAScript's");
  options.patterns = {};
  options.patterns.excluded_regex = R"(\A.*)";
  refused(options, "it has Python's \\A");
  options.patterns.excluded_regex = ".*";
  refused(options, "exclude_modules and layers_to_transform leave no projection");
}

TEST_CASE("what vLLM does not load beside its base is told with the way on") {
  const auto said = [](const LoraOptions& options) {
    std::string text;
    for (const auto& line : in_vllm(options)) text += line + "\n";
    return text;
  };
  for (const std::int64_t rank : {1, 4, 8, 16}) CHECK(said({.rank = rank}).empty());
  for (const auto& [rank, most] : std::map<int, const char*>{{17, "32"}, {100, "128"}, {257, "320"}, {512, "512"}}) {
    CHECK(said({.rank = rank}).find(std::string("--max-lora-rank ") + most + "\n") != std::string::npos);
  }
  CHECK(said({.rank = 513}).find("above vLLM's largest max_lora_rank, 512") != std::string::npos);
  CHECK(said({.modules_to_save = {"norm"}}).find("with modules_to_save (norm)") != std::string::npos);
  CHECK(said({.dora = true}).find("no DoRA") != std::string::npos);
  LoraOptions patterns;
  patterns.patterns.alphas = {{"q_proj", 4}};
  CHECK(said(patterns).find("scale every module alike") != std::string::npos);
}

TEST_CASE("options that cannot be meant are refused by name") {
  const auto refused = [](LoraOptions options, const char* why) {
    Stack stack;
    CHECK_THROWS_WITH_AS(add_lora(*stack, options), doctest::Contains(why), c10::Error);
  };
  refused({.rank = 0}, "lora_rank is 0");
  refused({.alpha = kInfinity}, "lora_alpha");
  refused({.dropout = 1}, "lora_dropout is 1");
  refused({.target_modules = {}}, "target_modules is empty");
  refused({.modules_to_save = {"q_proj"}}, "no module of this name can be trained whole");
  refused({.modules_to_save = {"layer1"}}, "no module of this name can be trained whole");
  refused({.modules_to_save = {""}}, "modules_to_save has an empty name");
}

TEST_CASE("a new adapter changes nothing, and only it is trained") {
  for (const bool dora : {false, true}) {
    Stack plain, adapted;
    auto options = some_options();
    options.dora = dora;
    add_lora(*adapted, options, 5);
    const auto x = torch::cos(torch::arange(3 * kWidth).view({3, kWidth}));
    CHECK(adapted(x).allclose(plain(x), 1e-5, 1e-6));
    for (const auto& item : adapted->named_parameters()) {
      CHECK(item.value().requires_grad() == is_adapters(item.key()));
      if (item.key().ends_with("lora_A.weight")) {
        const auto most = item.value().abs().max().item<double>();
        const auto bound = 1 / std::sqrt(static_cast<double>(item.value().size(1)));
        CHECK(most <= bound);
        CHECK(most > 0.8 * bound);
      }
    }
  }
}

TEST_CASE("first values of adapters are those of one process on any mesh, from memory or through a source") {
  for (const bool dora : {false, true}) {
    auto options = some_options();
    options.dora = dora;
    options.init = dora ? LoraInit::Gaussian : LoraInit::Kaiming;
    Stack alone;
    add_lora(*alone, options, 11);
    std::map<std::string, at::Tensor> expected;
    for (const auto& item : alone->named_parameters()) expected[item.key()] = item.value().detach();
    CHECK_FALSE(expected.at("layer0.q_proj.lora.lora_A.weight").equal(expected.at("layer1.q_proj.lora.lora_A.weight")));
    const auto check = [&](std::int64_t ranks, const Policy& policy) {
      on_ranks(ranks, [&](const World& world) {
        std::optional<MetaDevice> meta(std::in_place);
        Shardable<Stack> stack;
        meta.reset();
        add_lora(*stack, options);
        StackValues base;
        LoraSource source(base, options, 11);
        auto parallel = parallelize(*stack, groups_of(world, policy), policy, &source);
        for (const auto& [name, value] : whole_values(*stack, parallel)) {
          INFO(name);
          CHECK(value.allclose(expected.at(name), 1e-6, 0));
          if (!name.ends_with("vector.weight")) CHECK(value.equal(expected.at(name)));
        }
      });
    };
    check(1, fsdp());
    check(3, fsdp());
    check(2, ddp());
    check(4, hsdp(2));
  }
}

TEST_CASE("a frozen base has no gradients: adapters alone are reduced, and nothing else is stepped") {
  on_ranks(2, [](const World& world) {
    const auto policy = fsdp();
    auto groups = groups_of(world, policy);
    Shardable<Stack> stack;
    add_lora(*stack, some_options());
    auto parallel = parallelize(*stack, groups, policy);
    std::int64_t adapters = 0, sent = 0;
    for (const auto& unit : parallel.units()) {
      for (const auto& flat : unit->flats()) {
        for (const auto& parameter : flat->parameters()) CHECK(flat->trainable() == is_adapters(parameter.name));
        if (flat->trainable()) sent += 4 * flat->layout().shard_numel;
      }
    }
    for (const auto& shard : parallel.named_shards()) {
      CHECK(is_adapters(shard.name));
      adapters += shard.tensor.numel();
    }
    CHECK(adapters < 4 * 3 * (kWidth + 24) * 3);
    *groups.traffic = {};
    loss_of(stack, world, 0).backward();
    CHECK(groups.traffic->reduce_scatter.bytes == sent);
    CHECK(groups.traffic->all_reduce.bytes == 0);
    for (const auto& parameter : parallel.parameters()) {
      CHECK((parameter.shard.grad().defined() && parameter.shard.grad().numel() > 0) ==
            (is_adapters(parameter.name) && parameter.shard.numel() > 0));
    }
  });
}

TEST_CASE("dropout takes LibTorch's generator, and a recomputed layer drops the same again") {
  auto options = some_options();
  options.dropout = 0.5;
  const auto gradients = [&](bool recomputed, bool training) {
    Shardable<Stack> stack(recomputed);
    add_lora(*stack, options, 3);
    stir(*stack);
    stack->train(training);
    torch::manual_seed(4);
    const auto loss = loss_of(stack, {}, 0);
    loss.backward();
    std::vector<at::Tensor> result{loss.detach()};
    for (const auto& item : stack->named_parameters()) {
      if (item.value().requires_grad()) result.push_back(item.value().grad());
    }
    return result;
  };
  const auto kept = gradients(false, true), again = gradients(true, true), evaluated = gradients(false, false);
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(again[i].allclose(kept[i], 1e-6, 1e-8));
  CHECK_FALSE(kept[0].allclose(evaluated[0], 1e-4));
}

TEST_CASE("an adapter's folder comes back in another world, and merged it computes what the adapted model computes") {
  for (const bool dora : {false, true}) {
    const TempDir folder;
    auto options = some_options();
    options.dora = dora;
    options.rank_stabilized = !dora;
    std::map<std::string, at::Tensor> trained;
    at::Tensor output;
    const auto x = torch::cos(torch::arange(3 * kWidth).view({3, kWidth}));
    on_ranks(2, [&](const World& world) {
      auto policy = fsdp();
      Shardable<Stack> stack;
      add_lora(*stack, options, 1);
      stir(*stack);
      policy.store = store_projections(*stack);
      auto parallel = parallelize(*stack, groups_of(world, policy), policy);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
      train_steps(stack, parallel, world, optimizer, 0, 2);
      save_adapter(folder / "adapter", *stack, parallel, "base");
      const auto values = whole_values(*stack, parallel);
      if (world.rank == 0) trained = values;
    });
    const auto read = read_adapter_config(folder / "adapter");
    CHECK(read.rank == options.rank);
    CHECK(read.alpha == options.alpha);
    CHECK(read.target_modules == options.target_modules);
    CHECK(read.rank_stabilized == options.rank_stabilized);
    CHECK(read.dora == options.dora);
    on_ranks(3, [&](const World& world) {
      Shardable<Stack> stack;
      add_lora(*stack, read);
      StackValues base;
      const auto source = adapter_source(folder / "adapter", base);
      auto parallel = parallelize(*stack, groups_of(world, fsdp()), fsdp(), source.get());
      for (const auto& [name, value] : whole_values(*stack, parallel)) {
        if (is_adapters(name)) CHECK(value.equal(trained.at(name)));
      }
      at::NoGradGuard no_grad;
      const auto result = stack(x);
      if (world.rank == 0) output = result.clone();
      auto merging = merge_adapters(*stack, parallel);
      if (!dora) merging.slab_bytes = 100;  // so that rows are cut
      export_safetensors(folder / "merged.safetensors", *stack, parallel, merging);
    });
    Shardable<Stack> plain;
    auto alone = parallelize(*plain, World{}, {.method = ParallelMethod::None});
    load_safetensors(folder / "merged.safetensors", *plain, alone);
    CHECK(plain(x).allclose(output, 1e-4, 1e-5));
    CHECK_FALSE(plain(x).allclose(Stack()(x), 1e-4, 1e-5));
  }
}

TEST_CASE("a merged export of encoded projections takes their values from the source, and needs it") {
  const TempDir folder;
  on_ranks(2, [&](const World& world) {
    auto policy = fsdp();
    Shardable<Stack> stack;
    add_lora(*stack, some_options());
    policy.store = store_projections(*stack);
    auto parallel = parallelize(*stack, groups_of(world, policy), policy);
    CHECK_THROWS_WITH_AS(export_safetensors(folder / "no", *stack, parallel, merge_adapters(*stack, parallel)),
                         doctest::Contains("is kept encoded"), c10::Error);
    StackValues base;
    export_safetensors(folder / "merged.safetensors", *stack, parallel, merge_adapters(*stack, parallel, &base));
    Shardable<Stack> frozen;
    for (auto& parameter : frozen->parameters()) parameter.set_requires_grad(false);
    policy.store = store_projections(*frozen);
    auto held = parallelize(*frozen, groups_of(world, policy), policy);
    CHECK_THROWS_WITH_AS(load_safetensors(folder / "merged.safetensors", *frozen, held),
                         doctest::Contains("is kept encoded"), c10::Error);
  });
  Shardable<Stack> plain;
  auto alone = parallelize(*plain, World{}, {.method = ParallelMethod::None});
  load_safetensors(folder / "merged.safetensors", *plain, alone);
  const auto truth = Stack()->parameters(), got = plain->parameters();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(truth[i]));  // lora_B is zero
}

TEST_CASE("a checkpoint of adapters holds them alone, goes on in any world, and is no whole model") {
  for (const bool encoded : {false, true}) {
    const TempDir folder;
    std::vector<double> expected;
    const auto run = [&](const World& world, Policy policy, bool resume) {
      Shardable<Stack> stack;
      add_lora(*stack, some_options(), 1);
      if (encoded) policy.store = store_projections(*stack);
      auto parallel = parallelize(*stack, groups_of(world, policy), policy);
      torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2));
      if (resume) {
        load_checkpoint(folder / "step-000003", *stack, parallel, &optimizer);
      } else {
        train_steps(stack, parallel, world, optimizer, 0, 3);
        if (encoded) {
          CHECK_THROWS_WITH_AS(save_checkpoint(folder / "whole", *stack, parallel, &optimizer, {.step = 3}),
                               doctest::Contains("is kept encoded"), c10::Error);
        }
        save_checkpoint(folder.path(), *stack, parallel, &optimizer, {.step = 3}, {.frozen = false});
      }
      return train_steps(stack, parallel, world, optimizer, 3, 6);
    };
    on_ranks(2, [&](const World& world) {
      const auto losses = run(world, fsdp(), false);
      if (world.rank == 0) expected = losses;
    });
    const auto index = read_index(folder / "step-000003");
    CHECK_FALSE(index.frozen);
    CHECK(index.parameters.size() == 12);
    for (const auto& [name, tensor] : index.parameters) CHECK(is_adapters(name));
    on_ranks(2, [&](const World& world) { CHECK(run(world, fsdp(), true) == expected); });
    for (const auto& policy : {ddp(), hsdp(2)}) {
      on_ranks(4, [&](const World& world) {
        const auto losses = run(world, policy, true);
        for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-5));
      });
    }
    CHECK_THROWS_WITH_AS(export_checkpoint(folder / "step-000003", folder / "no.safetensors"),
                         doctest::Contains("saved without frozen parameters"), c10::Error);
  }
}

TEST_CASE("an embedding that is the head too is saved as both, as PEFT needs it, and goes on as one in another world") {
  const TempDir folder;
  const auto file = folder / "adapter" / "adapter_model.safetensors",
             config_file = folder / "adapter" / "adapter_config.json";
  const DecoderConfig config{.family = "qwen2",
                             .vocabulary = 30,
                             .width = 8,
                             .mlp_width = 12,
                             .layers = 1,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 4,
                             .max_positions = 16,
                             .windows = {0},
                             .tied_head = true,
                             .initializer_range = 0.3};
  const std::string embedding = "model.embed_tokens.weight", stored = "base_model.model." + embedding,
                    head = "base_model.model.lm_head.weight";
  const auto read = [&] {
    std::map<std::string, at::Tensor> tensors;
    for (const auto& entry : read_header(InputFile(file)).tensors) {
      SafetensorsSource source(file, {.name = [&](const auto& name) { return name == entry.name ? name : ""; }});
      std::vector<std::int64_t> sizes(entry.shape.begin(), entry.shape.end());
      source.check({{.name = entry.name, .sizes = sizes}});
      tensors[entry.name] = torch::empty(sizes);
      source.read(entry.name, sizes, 0, tensors[entry.name].view({-1}));
    }
    return tensors;
  };
  at::Tensor trained;
  on_ranks(2, [&](const World& world) {
    auto values = first_values(config, 3);
    Shardable<Decoder> model(config);
    add_lora(*model, {.rank = 2, .target_modules = {"q_proj"}, .modules_to_save = {"embed_tokens"}});
    LoraSource source(values, {.rank = 2}, 1);
    auto parallel = parallelize(*model, groups_of(world, fsdp()), fsdp(), &source);
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(0.1));
    std::get<0>(model(TokenBatch{.ids = torch::arange(6).view({1, 6})})).pow(2).mean().backward();
    optimizer.step();
    save_adapter(folder / "adapter", *model, parallel, "base");
    const auto whole = whole_values(*model, parallel);
    if (world.rank == 0) trained = whole.at(embedding);
  });
  const auto saved = read();
  CHECK(saved.at(stored).equal(trained));
  CHECK(saved.at(head).equal(trained));
  const auto options = read_adapter_config(folder / "adapter");
  CHECK(options.modules_to_save == std::vector<std::string>{"embed_tokens", "lm_head"});
  CHECK(options.ties_head);

  const auto goes_on = [&](const World& world) {
    auto values = first_values(config, 3);
    Shardable<Decoder> model(config);
    const auto now = read_adapter_config(folder / "adapter");
    add_lora(*model, now);
    const auto source = adapter_source(folder / "adapter", values, now, /*tied_head=*/true);
    const auto policy = world.size > 1 ? fsdp() : Policy{.method = ParallelMethod::None};
    auto parallel = parallelize(*model, groups_of(world, policy), policy, source.get());
    CHECK(whole_values(*model, parallel).at(embedding).equal(trained));
  };
  on_ranks(3, goes_on);

  // As PEFT saves it without ensure_weight_tying, where its head is the base's; and with, or trained apart.
  const auto config_with = [&](const std::string& modules, const std::string& ties) {
    write_file(config_file, R"({"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"], "modules_to_save": )" +
                                modules + R"(, "ensure_weight_tying": )" + ties + "}");
  };
  const auto file_with = [&](std::map<std::string, at::Tensor> tensors) {
    write_tensor_file(file, {tensors.begin(), tensors.end()}, {});
  };
  auto alone = saved;
  alone.erase(head);
  file_with(alone);
  config_with(R"(["embed_tokens"])", "false");
  CHECK_THROWS_WITH_AS(goes_on({}), doctest::Contains("so PEFT takes the base's head; the model's head is its"),
                       c10::Error);
  config_with(R"(["embed_tokens"])", "true");
  goes_on({});
  file_with(saved);
  config_with(R"(["embed_tokens", "model.embed_tokens"])", "true");  // PEFT's own words
  goes_on({});
  auto apart = saved;
  apart[head] = apart[head] + 1;
  file_with(apart);
  config_with(R"(["embed_tokens", "lm_head"])", "false");
  CHECK_THROWS_WITH_AS(goes_on({}), doctest::Contains("has an lm_head that is not its embed_tokens"), c10::Error);

  Shardable<Decoder> model(config);
  CHECK_THROWS_WITH_AS(add_lora(*model, {.modules_to_save = {"lm_head"}}),
                       doctest::Contains("modules_to_save has 'lm_head'"), c10::Error);
}

TEST_CASE("a key of adapter_config.json that could change the numbers and is not understood is refused by name") {
  const auto parse = [](const std::string& more) {
    return parse_adapter_config(R"({"peft_type": "LORA", "target_modules": ["q_proj"])" + more + "}", "config");
  };
  const auto refused = [&](const std::string& more, const char* why) {
    INFO(more);
    CHECK_THROWS_WITH_AS(parse(more), doctest::Contains(why), c10::Error);
  };
  const auto good = parse(R"(, "r": 4, "lora_alpha": 2.5, "init_lora_weights": "gaussian", "rank_pattern": {},
                             "layers_to_transform": null, "task_type": "CAUSAL_LM", "use_qalora": false)");
  CHECK(good.rank == 4);
  CHECK(good.alpha == 2.5);
  CHECK((good.init == LoraInit::Gaussian));
  using Ranks = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(parse(R"(, "rank_pattern": {"v_proj": 3, "q_proj": 2})").patterns.ranks == Ranks{{"v_proj", 3}, {"q_proj", 2}});
  refused(R"(, "rank_pattern": {"q_proj": 0})", "rank_pattern");
  refused(R"(, "rank_pattern": {"q_proj": 2.5})", "rank_pattern");
  refused(R"(, "alpha_pattern": {"q_proj": "2"})", "alpha_pattern");
  refused(R"(, "alpha_pattern": [1])", "alpha_pattern");
  CHECK(parse(R"(, "layers_to_transform": 1)").patterns.layers == std::vector<std::int64_t>{1});
  refused(R"(, "layers_to_transform": ["1"])", "layers_to_transform");
  refused(R"(, "layers_pattern": "layers")", "a layers_to_transform beside it");
  refused(R"(, "exclude_modules": 1)", "exclude_modules");
  refused(R"(, "something_new": 1)", "something_new is 1, which may change the numbers");
  refused(R"(, "bias": "all")", "bias");
  refused(R"(, "fan_in_fan_out": true)", "fan_in_fan_out");
  CHECK(parse(R"(, "modules_to_save": ["lm_head"])").modules_to_save == std::vector<std::string>{"lm_head"});
  refused(R"(, "modules_to_save": "lm_head")", "modules_to_save");
  refused(R"(, "modules_to_save": [""])", "modules_to_save");
  refused(R"(, "init_lora_weights": "pissa")", "init_lora_weights");
  CHECK((parse(R"(, "init_lora_weights": false)").init == LoraInit::Kaiming));
  refused(R"(, "r": -1)", "r is -1");
  refused(R"(, "r": 1e30)", "r is 1e+30");
  refused(R"(, "r": 0)", "lora_rank is 0");
  refused(R"(, "lora_dropout": "none")", "lora_dropout");
  refused(R"(, "use_dora": 1)", "use_dora");
  CHECK_THROWS_WITH_AS(parse_adapter_config(R"({"peft_type": "IA3", "target_modules": ["q"]})", "c"),
                       doctest::Contains("peft_type"), c10::Error);
  CHECK(parse_adapter_config(R"({"peft_type": "LORA", "target_modules": ".*_proj"})", "c").target_regex == ".*_proj");
  CHECK_THROWS_WITH_AS(parse_adapter_config(R"({"target_modules": ["q"]})", "c"), doctest::Contains("no peft_type"),
                       c10::Error);
  CHECK_THROWS_WITH_AS(parse_adapter_config("[]", "c"), doctest::Contains("no JSON object"), c10::Error);
}

TEST_CASE("an adapter's file with other parameters than a LoRA's, or of another model, is refused by name") {
  const TempDir folder;
  std::filesystem::create_directories(folder / "adapter");
  const auto load = [&](const TensorList& tensors) {
    write_tensor_file(folder / "adapter" / "adapter_model.safetensors", tensors, {});
    Shardable<Stack> stack;
    add_lora(*stack, {.rank = 2, .target_modules = {"layer0.q_proj"}});
    StackValues base;
    const auto source = adapter_source(folder / "adapter", base);
    parallelize(*stack, World{}, {.method = ParallelMethod::None}, source.get());
  };
  const std::string path = "base_model.model.layer0.q_proj.";
  const std::pair<std::string, at::Tensor> a{path + "lora_A.weight", torch::ones({2, kWidth})},
      b{path + "lora_B.weight", torch::ones({24, 2})};
  CHECK_NOTHROW(load({a, b}));
  CHECK_THROWS_WITH_AS(load({a, b, {"base_model.model.lm_head.weight", torch::ones({2})}}),
                       doctest::Contains("no part of a LoRA"), c10::Error);
  const auto incomplete = [&] {
    StackValues base;
    adapter_source(folder / "adapter", base, {.modules_to_save = {"score"}});
  };
  CHECK_THROWS_WITH_AS(incomplete(), doctest::Contains("has no score, which adapter_config.json names"), c10::Error);
  CHECK_THROWS_WITH_AS(load({a, b, {"layer0.q_proj.lora_A.weight", torch::ones({2})}}),
                       doctest::Contains("no part of a LoRA"), c10::Error);
  CHECK_THROWS_WITH_AS(load({a}), doctest::Contains("has no base_model.model.layer0.q_proj.lora_B.weight"), c10::Error);
  CHECK_THROWS_WITH_AS(load({a, {path + "lora_B.weight", torch::ones({24, 3})}}),
                       doctest::Contains("is [24, 3]; by adapter_config.json and this model it is [24, 2]"),
                       c10::Error);
}
