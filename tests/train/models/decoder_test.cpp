// SPDX-License-Identifier: Apache-2.0
// A decoder as the trainer uses it: names, parts, packed rows, generation, folders, precision.
// That its numbers are transformers' is models_peer_test.py's subject; here is what holds for any numbers.
// Models are tiny and their values drawn, so each test takes milliseconds.
#include "tests/support/ranks.hpp"
#include "tests/support/temp_dir.hpp"
#include "trainer/models/capped_attention.hpp"
#include "trainer/models/generate.hpp"
#include "trainer/models/hf_folder.hpp"
#include "trainer/models/label_log_probabilities.hpp"
#include "trainer/models/moe.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace sealift;
using namespace sealift::trainer;
using sealift::test::on_ranks;
using sealift::test::TempDir;
namespace fs = std::filesystem;

namespace {

DecoderConfig small_config() {
  return {.family = "qwen3",
          .vocabulary = 50,
          .width = 16,
          .mlp_width = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .max_positions = 64,
          .windows = {0, 5},
          .qk_norm = true,
          .initializer_range = 0.3};
}

train::World alone() {
  return {.store = c10::make_intrusive<c10d::HashStore>(), .rank = 0, .size = 1};
}

train::Shardable<Decoder> make_model(const DecoderConfig& config, const DecoderOptions& options = {}) {
  train::Shardable<Decoder> model(config, options);
  auto values = first_values(config, 3);
  train::parallelize(*model, alone(), {}, &values);
  return model;
}

at::Tensor random_ids(std::int64_t rows, std::int64_t time, std::uint64_t seed = 1) {
  return torch::randint(0, 50, {rows, time}, at::detail::createCPUGenerator(seed), at::kLong);
}

double relative(const at::Tensor& found, const at::Tensor& expected) {
  return ((found - expected).norm() / expected.norm()).item<double>();
}

at::Tensor logits_of(train::Shardable<Decoder>& model, const TokenBatch& batch) {
  at::NoGradGuard no_grad;
  return std::get<0>(model(batch));
}

}  // namespace

TEST_CASE("parameters have Hugging Face's names, and a tied head is none") {
  auto config = small_config();
  config.layers = 1;
  config.windows = {0};
  config.qkv_bias = true;
  config.tied_head = true;
  const auto names = Decoder(config)->named_parameters().keys();
  CHECK(names == std::vector<std::string>{
                     "model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                     "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.q_proj.bias",
                     "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.k_proj.bias",
                     "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.v_proj.bias",
                     "model.layers.0.self_attn.o_proj.weight", "model.layers.0.self_attn.q_norm.weight",
                     "model.layers.0.self_attn.k_norm.weight", "model.layers.0.post_attention_layernorm.weight",
                     "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
                     "model.layers.0.mlp.down_proj.weight", "model.norm.weight"});
  config.tied_head = false;
  CHECK(Decoder(config)->named_parameters().keys().back() == "lm_head.weight");
  config.reward_head = true;
  CHECK(Decoder(config)->named_parameters().keys().back() == "score.weight");
}

TEST_CASE("a decoder is built without memory, in the dtype that is asked for") {
  const train::MetaDevice meta;
  const Decoder model(small_config(), DecoderOptions{.dtype = at::kBFloat16});
  for (const auto& parameter : model->parameters()) {
    CHECK(parameter.is_meta());
    CHECK((parameter.scalar_type() == at::kBFloat16));
  }
  CHECK(model->buffers().empty());
}

TEST_CASE("packed sequences compute what they compute alone, whatever stands before or after them") {
  auto model = make_model(small_config());
  const auto ids = random_ids(1, 20);
  const auto segments = torch::tensor({{-1, -1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, -1}}, at::kLong);
  const auto positions = torch::tensor({{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 0}}, at::kLong);
  const auto packed = logits_of(model, {.ids = ids, .positions = positions, .segments = segments});
  for (const auto& [begin, size] : {std::pair{2, 7}, {9, 8}, {17, 2}}) {
    CHECK(relative(packed.narrow(1, begin, size), logits_of(model, {.ids = ids.narrow(1, begin, size)})) < 1e-5);
  }
}

TEST_CASE("padding behind a row changes nothing and needs no mask") {
  auto model = make_model(small_config());
  auto ids = random_ids(2, 9);
  const auto segments = torch::tensor({{0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, -1, -1, -1, -1}}, at::kLong);
  const auto first = logits_of(model, {.ids = ids, .segments = segments});
  ids[1].narrow(0, 5, 4).fill_(3);
  const auto second = logits_of(model, {.ids = ids, .segments = segments});
  CHECK(first[0].equal(second[0]));
  CHECK(first[1].narrow(0, 0, 5).equal(second[1].narrow(0, 0, 5)));
  const auto seen = [](const at::Tensor& rows) { return Visibility(rows, rows.size(1), row_shape_of(rows, {})); };
  CHECK(seen(segments).is_causal({}));
  CHECK_FALSE(seen(segments).is_causal({.window = 4}));
  CHECK_FALSE(seen(torch::tensor({{-1, 0, 0}}, at::kLong)).is_causal({}));
  CHECK_FALSE(seen(torch::tensor({{0, 1, 1}}, at::kLong)).is_causal({}));
}

TEST_CASE("queries and keys that lie side by side turn as they do alone") {
  const Rope rope({.theta = 100}, 6, 32);
  const auto tables = rope.tables(torch::arange(5).unsqueeze(0));
  const auto both = torch::randn({2, 5, 18});
  const auto queries = both.narrow(-1, 0, 12).view({2, 5, 2, 6}), keys = both.narrow(-1, 12, 6).view({2, 5, 1, 6});
  const auto [turned_queries, turned_keys] = rotate(queries, keys, tables);
  CHECK(turned_queries.is_alias_of(turned_keys));
  const auto [alone_queries, alone_keys] = rotate(queries.clone(), keys.clone(), tables);
  CHECK_FALSE(alone_queries.is_alias_of(alone_keys));
  CHECK(turned_queries.equal(alone_queries));
  CHECK(turned_keys.equal(alone_keys));
}

TEST_CASE("projections of one input compute together, with their gradients, what each computes alone") {
  const auto leaf = [](at::IntArrayRef sizes) { return torch::randn(sizes).set_requires_grad(true); };
  for (const bool together : {false, true}) {
    CAPTURE(together);
    const auto input = leaf({2, 3, 5});
    std::vector<LinearPart> parts{
        {.weight = leaf({4, 5}), .bias = leaf({4}), .a = {}, .b = {}},
        {.weight = leaf({6, 5}), .bias = {}, .a = leaf({2, 5}), .b = leaf({6, 2}), .scaling = 1.5},
        {.weight = torch::randn({3, 5}), .bias = {}, .a = leaf({1, 5}), .b = leaf({3, 1}), .scaling = 0.5}};
    std::vector<at::Tensor> leaves{input}, expected;
    for (const auto& part : parts) {
      auto output = torch::linear(input, part.weight, part.bias);
      if (part.a.defined()) output = output + part.scaling * torch::linear(torch::linear(input, part.a), part.b);
      expected.push_back(output);
      for (const auto& each : {part.weight, part.bias, part.a, part.b}) {
        if (each.defined() && each.requires_grad()) leaves.push_back(each);
      }
    }
    const auto found = joined_linear(input, parts, together ? 2 : 0);
    CHECK(found[0].is_alias_of(found[1]) == together);
    at::Tensor wanted_sum, found_sum;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(found[i].allclose(expected[i], 1e-5, 1e-6));
      const auto pull = torch::randn(expected[i].sizes());
      const auto wanted_part = (expected[i] * pull).sum(), found_part = (found[i] * pull).sum();
      wanted_sum = wanted_sum.defined() ? wanted_sum + wanted_part : wanted_part;
      found_sum = found_sum.defined() ? found_sum + found_part : found_part;
    }
    const auto wanted = torch::autograd::grad({wanted_sum}, leaves), given = torch::autograd::grad({found_sum}, leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(given[i].allclose(wanted[i], 1e-4, 1e-5));
    // A loss that uses one output alone.
    const auto of_one = torch::autograd::grad({joined_linear(input, parts, together ? 2 : 0)[1].sum()}, {input});
    const auto& second = parts[1];
    const auto whole = second.weight + second.scaling * at::mm(second.b, second.a);
    CHECK(of_one[0].allclose(whole.sum(0).detach().expand_as(input), 1e-4, 1e-5));
  }
}

TEST_CASE("where sequences begin is counted over the whole batch, padding as a sequence") {
  const auto segments = torch::tensor({{0, 0, 1, -1}, {0, 1, 1, 1}}, at::kLong);
  const Visibility visibility(segments, 4, row_shape_of(segments, {}));
  CHECK(visibility.starts(2, at::kCPU).equal(torch::tensor({0, 2, 3, 4, 5, 8}, at::kInt)));
  CHECK(visibility.longest() == 3);
  CHECK(Visibility({}, 4, {}).starts(2, at::kCPU).equal(torch::tensor({0, 4, 8}, at::kInt)));
}

TEST_CASE("label log-probabilities and their gradients are those of the plain computation, in pieces or at once") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t at_a_time : {std::int64_t{1}, std::int64_t{2100}, std::int64_t{1} << 24}) {
      for (const bool equal : {true, false}) {
        CAPTURE(at_a_time);
        CAPTURE(equal);
        const double tolerance = dtype == at::kFloat ? 1e-6 : 2e-2;
        torch::manual_seed(2);
        const auto hidden = torch::randn({2, 11, 8}).to(dtype).requires_grad_();
        const auto head = (torch::randn({700, 8}) * 2).to(dtype).requires_grad_();
        auto labels = torch::randint(0, 700, {2, 11}, at::kLong);
        labels[0].narrow(0, 0, 4).fill_(kNoLabel);
        labels[1][10] = 699;
        const auto scales = equal ? torch::full({2, 11}, -0.3) : torch::randn({2, 11});

        const auto own_hidden = hidden.detach().to(at::kDouble).requires_grad_();
        const auto own_head = head.detach().to(at::kDouble).requires_grad_();
        const auto plain = torch::linear(own_hidden, own_head)
                               .log_softmax(-1)
                               .gather(-1, labels.clamp_min(0).unsqueeze(-1))
                               .squeeze(-1)
                               .masked_fill(labels == kNoLabel, 0);
        (plain * scales).sum().backward();
        const auto weights = c10::make_intrusive<TokenWeights>();
        for (int time = 0; time < 2; ++time) {  // the second knows what the first one's backward saw
          hidden.mutable_grad() = at::Tensor();
          head.mutable_grad() = at::Tensor();
          const auto found = label_log_probabilities(hidden, head, labels, at_a_time, weights);
          (found * scales).sum().backward();
          CHECK(weights->are_equal == equal);
          CHECK((found.scalar_type() == at::kFloat));
          CHECK(found.masked_select(labels == kNoLabel).eq(0).all().item<bool>());
          CHECK(relative(found, plain) < tolerance);
          CHECK((hidden.grad().scalar_type() == dtype));
          CHECK(relative(hidden.grad(), own_hidden.grad()) < tolerance);
          CHECK(relative(head.grad(), own_head.grad()) < tolerance);
        }
      }
    }
  }
}

TEST_CASE("a frozen head gets no gradient, a batch without labels zeros, a label beyond the vocabulary an error") {
  const auto hidden = torch::randn({3, 8}).requires_grad_();
  const auto frozen = torch::randn({20, 8});
  label_log_probabilities(hidden, frozen, torch::tensor({1, 2, 19}, at::kLong)).sum().backward();
  CHECK_FALSE(frozen.grad().defined());
  const auto head = torch::randn({20, 8}).requires_grad_();
  const auto none = label_log_probabilities(hidden, head, torch::full({3}, kNoLabel, at::kLong));
  CHECK(none.eq(0).all().item<bool>());
  none.sum().backward();
  CHECK(head.grad().eq(0).all().item<bool>());
  CHECK_THROWS_WITH_AS(label_log_probabilities(hidden, head, torch::tensor({1, 2, 20}, at::kLong)),
                       doctest::Contains("labels from 1 to 20"), c10::Error);
}

TEST_CASE("swiglu and rotation have the gradients of their formulas") {
  torch::manual_seed(4);
  const auto gate = torch::randn({3, 5}, at::kDouble).requires_grad_(),
             up = torch::randn({3, 5}, at::kDouble).requires_grad_();
  const auto weights = torch::randn({3, 5}, at::kDouble);
  const auto mine = torch::autograd::grad({(swiglu(gate, up) * weights).sum()}, {gate, up});
  const auto plain = torch::autograd::grad({(gate * gate.sigmoid() * up * weights).sum()}, {gate, up});
  CHECK(mine[0].allclose(plain[0]));
  CHECK(mine[1].allclose(plain[1]));

  const auto heads = torch::randn({2, 4, 3, 6}, at::kDouble).requires_grad_();
  const auto tables = Rope({.theta = 100}, 6, 64).tables(torch::tensor({{0, 1, 5, 7}, {2, 3, 4, 9}}, at::kLong));
  const auto cos = torch::cat({tables.cos, tables.cos}, -1), sin = torch::cat({tables.sin, tables.sin}, -1);
  const auto halves = heads.chunk(2, -1);
  const auto expected = heads * cos + torch::cat({-halves[1], halves[0]}, -1) * sin;
  const auto turned = [&](const at::Tensor& x) { return std::get<0>(rotate(x, x, tables)); };
  CHECK(turned(heads).allclose(expected));
  const auto pull = torch::randn({2, 4, 3, 6}, at::kDouble);
  CHECK(torch::autograd::grad({(turned(heads) * pull).sum()}, {heads})[0].allclose(
      torch::autograd::grad({(expected * pull).sum()}, {heads})[0]));
}

TEST_CASE("a part of a head turns, by neighbours or by halves, and the rest stays") {
  torch::manual_seed(5);
  const auto heads = torch::randn({2, 4, 3, 10}, at::kDouble).requires_grad_();
  const auto positions = torch::tensor({{0, 1, 5, 7}, {2, 3, 4, 9}}, at::kLong);
  const auto pull = torch::randn(heads.sizes(), at::kDouble);
  for (const bool by_neighbours : {false, true}) {
    const auto tables = Rope({.theta = 100, .part = 0.6, .by_neighbours = by_neighbours}, 10, 64).tables(positions);
    REQUIRE(tables.cos.size(-1) == 3);
    const auto turning = heads.narrow(-1, 0, 6);
    const auto pairs = by_neighbours ? turning.unflatten(-1, {3, 2}) : turning.unflatten(-1, {2, 3}).transpose(-1, -2);
    const auto a = pairs.select(-1, 0), b = pairs.select(-1, 1);
    const auto turned =
        torch::stack({a * tables.cos - b * tables.sin, b * tables.cos + a * tables.sin}, by_neighbours ? -1 : -2);
    const auto expected = torch::cat({turned.flatten(-2), heads.narrow(-1, 6, 4)}, -1);
    const auto ours = std::get<0>(rotate(heads, heads, tables));
    CHECK(ours.allclose(expected));
    CHECK(torch::autograd::grad({(ours * pull).sum()}, {heads})[0].allclose(
        torch::autograd::grad({(expected * pull).sum()}, {heads})[0]));
  }
}

TEST_CASE("capped attention takes as many rows at a time as its scores have room for") {
  for (const std::int64_t heads : {8, 32, 64}) {
    for (const std::int64_t seen : {128, 8192, 32768}) {
      for (const std::int64_t window : {0, 1, 128, 512, 4096, 1 << 20}) {
        CAPTURE(heads);
        CAPTURE(seen);
        CAPTURE(window);
        const auto scores = [&](std::int64_t rows) {
          return heads * rows * (window > 0 ? std::min(seen, rows + window - 1) : seen);
        };
        const auto rows = capped_rows(heads, seen, window, kScoresAtATime);
        CHECK(rows >= 1);
        CHECK((rows == 1 || scores(rows) <= kScoresAtATime));
        CHECK((rows >= seen || scores(rows + 1) > kScoresAtATime));
      }
    }
  }
  CHECK(capped_rows(64, 1 << 20, 0, 1 << 10) == 1);  // one row is already more
}

TEST_CASE("capped attention a few rows at a time is that of its formula, with windows, segments and groups") {
  torch::manual_seed(6);
  const auto tensor = [](std::int64_t heads) { return torch::randn({2, 11, heads, 4}).mul_(2).requires_grad_(); };
  const auto queries = tensor(4), keys = tensor(2), values = tensor(2), pull = torch::randn({2, 11, 4, 4});
  const auto segments =
      torch::tensor({{0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2}, {0, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1}}, at::kLong);
  const auto places = at::arange(11), distance = places.unsqueeze(1) - places.unsqueeze(0);
  const auto gradients = [&](const at::Tensor& mixed) {
    return torch::autograd::grad({(mixed * pull).sum()}, {queries, keys, values});
  };
  for (const std::int64_t window : {0, 3}) {
    for (const auto& given : {at::Tensor(), segments}) {
      auto hidden = (distance < 0).unsqueeze(0).unsqueeze(0);
      if (window > 0) hidden = hidden | (distance >= window);
      if (given.defined()) hidden = hidden | (given.unsqueeze(2) != given.unsqueeze(1)).unsqueeze(1);
      const auto by_head = [](const at::Tensor& x) { return x.repeat_interleave(4 / x.size(2), 2).transpose(1, 2); };
      const auto scores = at::matmul(by_head(queries), by_head(keys).transpose(2, 3)) * 0.7;
      const auto weights = (1.5 * (scores / 1.5).tanh()).masked_fill(hidden, -INFINITY).softmax(-1);
      const auto expected = at::matmul(weights, by_head(values)).transpose(1, 2);
      const auto wanted = gradients(expected);
      for (const std::int64_t at_a_time : {1, 200, 1 << 20}) {
        CAPTURE(at_a_time);
        const auto mixed = attend_capped(queries, keys, values, given,
                                         {.window = window, .scale = 0.7, .cap = 1.5, .at_a_time = at_a_time});
        CHECK(relative(mixed, expected) < 1e-5);
        const auto ours = gradients(mixed);
        for (std::size_t i = 0; i < 3; ++i) CHECK(relative(ours[i], wanted[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE(
    "capped logits give the log-probabilities and gradients of their formula, in pieces and whatever the weights") {
  torch::manual_seed(7);
  const auto hidden = torch::randn({6, 8}).requires_grad_(), head = torch::randn({20, 8}).requires_grad_();
  const auto labels = torch::tensor({1, 2, 19, 0, 4, 4}, at::kLong);
  for (const auto& pull : {torch::ones({6}), torch::randn({6})}) {
    const auto logits = (torch::linear(hidden, head) / 2).tanh() * 2;
    const auto expected = logits.log_softmax(-1).gather(1, labels.unsqueeze(1)).squeeze(1);
    const auto wanted = torch::autograd::grad({(expected * pull).sum()}, {hidden, head});
    for (const std::int64_t at_a_time : {1, 1 << 20}) {
      for (const auto& weights : {c10::make_intrusive<TokenWeights>(), c10::intrusive_ptr<TokenWeights>()}) {
        const auto values = label_log_probabilities(hidden, head, labels, at_a_time, weights, {}, 2);
        CHECK(relative(values, expected) < 1e-5);
        const auto ours = torch::autograd::grad({(values * pull).sum()}, {hidden, head});
        for (std::size_t i = 0; i < 2; ++i) CHECK(relative(ours[i], wanted[i]) < 1e-5);
      }
    }
  }
}

TEST_CASE("the cache gives the logits of the whole row, one token at a time, with windows and caps too") {
  auto config = small_config();
  SUBCASE("windows") {}
  SUBCASE("caps") {
    config.score_cap = 0.5, config.logit_cap = 2, config.norm = NormKind::RmsOnePlus;
  }
  SUBCASE("one projection") {
    config.fused_qkv = config.fused_gate_up = true;
  }
  auto model = make_model(config);
  const auto ids = random_ids(1, 12);
  const auto whole = logits_of(model, {.ids = ids});
  KeyValueCache cache(2, 12);
  CHECK(relative(model->next_logits(ids.narrow(1, 0, 7), cache), whole.select(1, 6)) < 1e-5);
  for (std::int64_t i = 7; i < 12; ++i) {
    CHECK(relative(model->next_logits(ids.narrow(1, i, 1), cache), whole.select(1, i)) < 1e-5);
  }
  CHECK_THROWS_WITH_AS(model->next_logits(ids.narrow(1, 0, 1), cache), doctest::Contains("make a larger one"),
                       c10::Error);
}

TEST_CASE("generation draws by its seed, stops after an end token, and leaves the model in its mode") {
  auto config = small_config();
  auto model = make_model(config);
  const std::vector<std::int64_t> prompt{3, 1, 4, 1, 5};
  const auto draw = [&](std::uint64_t seed) {
    return generate(model, prompt, {.max_tokens = 20, .temperature = 1.5, .seed = seed});
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
  CHECK(model->is_training());
  const auto greedy = generate(model, prompt, {.max_tokens = 6});
  CHECK(greedy.size() == 6);
  config.end_tokens = {greedy[2]};
  auto ending = make_model(config);
  const auto stopped = generate(ending, prompt, {.max_tokens = 6});
  CHECK(stopped.back() == greedy[2]);
  CHECK(stopped.size() <= 3);
}

TEST_CASE("ranks that hold a model together go on with the tokens of the first of them, and end where it does") {
  auto config = small_config();
  config.experts = ExpertConfig{.experts = 4, .per_token = 2, .width = 12, .normalize = true, .layers = {true, true}};
  const std::vector<std::vector<std::int64_t>> prompts{{3, 1, 4, 1, 5}, {9, 2}, {6, 5, 3, 5, 8, 9, 7, 9}};
  const auto answers = [&](train::Shardable<Decoder>& model, std::uint64_t seed, const train::Collectives& ranks) {
    std::vector<std::vector<std::int64_t>> result;
    for (const auto& prompt : prompts) {
      const GenerateOptions how{.max_tokens = 16, .temperature = 1.5, .seed = seed, .ranks = ranks};
      result.push_back(generate(model, prompt, how));
    }
    return result;
  };
  // Each rank would draw other tokens by itself, as one whose logits are rounded otherwise may, and end elsewhere.
  auto endless = make_model(config);
  const auto first = answers(endless, 0, {})[0], second = answers(endless, 1, {})[0];
  const auto only_second = std::find_if(second.begin(), second.end(), [&](std::int64_t token) {
    return std::find(first.begin(), first.end(), token) == first.end();
  });
  REQUIRE(only_second < second.end() - 1);
  config.end_tokens = {*only_second};
  auto plain = make_model(config);
  const auto expected = answers(plain, 0, {});
  REQUIRE(expected[0].size() == 16);
  REQUIRE(answers(plain, 1, {})[0].size() < 16);
  for (const auto& [policy, expert_ranks] : {std::pair{train::Policy{.method = train::ParallelMethod::Fsdp}, 1},
                                             {train::Policy{.method = train::ParallelMethod::Hsdp, .shard_size = 2}, 1},
                                             {train::Policy{.method = train::ParallelMethod::Fsdp}, 2},
                                             {train::Policy{.method = train::ParallelMethod::Ddp}, 4}}) {
    for (const bool gathers : {true, false}) {
      on_ranks(4, [&, policy = policy, expert_ranks = expert_ranks](const train::World& world) {
        train::Shardable<Decoder> model(config);
        auto values = first_values(config, 3);
        auto groups = expert_ranks > 1 ? train::make_groups(world, policy, kExpertAxis, expert_ranks)
                                       : train::make_groups(world, train::make_mesh(policy, world.size));
        auto parallel = train::parallelize(*model, groups, policy, &values);
        const auto said = [&] { return answers(model, static_cast<std::uint64_t>(world.rank), groups.world); };
        if (!gathers) {
          CHECK(said() == expected);
          return;
        }
        const auto whole = parallel.gather_parameters();
        CHECK(said() == expected);
      });
    }
  }
}

TEST_CASE("under precision pure, far positions still turn by fp32 tables") {
  auto config = small_config();
  config.max_positions = 100'000;
  const auto ids = random_ids(2, 16);
  const auto positions = (torch::arange(16) + 50'000).expand({2, 16});
  auto whole = make_model(config);
  const auto expected = logits_of(whole, {.ids = ids, .positions = positions});
  on_ranks(2, [&](const train::World& world) {
    train::Shardable<Decoder> model(config);
    auto values = first_values(config, 3);
    const train::Policy policy{.method = train::ParallelMethod::Fsdp, .precision = train::parse_precision("pure")};
    train::parallelize(*model, world, policy, &values);
    const auto logits = logits_of(model, {.ids = ids, .positions = positions});
    CHECK((logits.scalar_type() == at::kBFloat16));
    CHECK(relative(logits.to(at::kFloat), expected) < 0.05);
  });
}

TEST_CASE("a reward head scores the last token of each sequence") {
  auto config = small_config();
  config.reward_head = true;
  auto model = make_model(config);
  const auto ids = random_ids(2, 6);
  const auto rows = logits_of(model, {.ids = ids});
  CHECK(rows.sizes() == at::IntArrayRef{2});
  const auto segments = torch::tensor({{0, 0, 0, 0, -1, -1}, {0, 0, 1, 1, 1, -1}}, at::kLong);
  const auto positions = torch::tensor({{0, 1, 2, 3, 0, 0}, {0, 1, 0, 1, 2, 0}}, at::kLong);
  const auto packed = logits_of(model, {.ids = ids, .positions = positions, .segments = segments});
  REQUIRE(packed.sizes() == at::IntArrayRef{3});
  CHECK(relative(packed[0], logits_of(model, {.ids = ids.narrow(0, 0, 1).narrow(1, 0, 4)})[0]) < 1e-5);
  CHECK(relative(packed[2], logits_of(model, {.ids = ids.narrow(0, 1, 1).narrow(1, 2, 3)})[0]) < 1e-5);
}

namespace {

/// A folder with a model of `small_config`, saved from two ranks.
void save_small(const fs::path& folder, const fs::path& base, const DecoderConfig& config) {
  fs::create_directories(base);
  std::ofstream(base / "config.json") << R"({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "use_sliding_window": true,
    "sliding_window": 5, "max_window_layers": 1})";
  std::ofstream(base / "tokenizer.json") << "{}";
  on_ranks(2, [&](const train::World& world) {
    train::Shardable<Decoder> model(config);
    auto values = first_values(config, 3);
    auto parallel = train::parallelize(*model, world, {.method = train::ParallelMethod::Fsdp}, &values);
    save_model_folder(folder, base, *model, parallel, {.max_file_bytes = 4000});
  });
}

}  // namespace

TEST_CASE("a saved folder is loaded again: same logits, tokenizer beside, in files of the size that was asked for") {
  const TempDir top;
  const auto folder = top / "saved";
  save_small(folder, top / "base", small_config());
  const auto config = read_decoder_config(folder);
  CHECK(test::read_file(folder / "tokenizer.json") == "{}");
  CHECK(fs::exists(folder / "model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(top / "saved.partial"));
  for (const auto& entry : fs::directory_iterator(folder)) CHECK(entry.file_size() < 6000);
  train::Shardable<Decoder> model(config);
  const auto source = model_folder_source(folder, config);
  train::parallelize(*model, alone(), {}, source.get());
  auto first = make_model(small_config());
  CHECK(logits_of(model, {.ids = random_ids(1, 8)}).equal(logits_of(first, {.ids = random_ids(1, 8)})));
  CHECK_THROWS_WITH_AS(save_small(folder, top / "base", small_config()), doctest::Contains("exists"), c10::Error);
}

TEST_CASE("a reward model starts from a language model's folder, its head from another source, and is saved as one") {
  const TempDir top;
  save_small(top / "saved", top / "base", small_config());
  auto config = read_decoder_config(top / "saved");
  config.reward_head = true;
  auto head = first_values(config, 7);
  CHECK_THROWS_WITH_AS(
      [&] {
        train::Shardable<Decoder> model(config);
        train::parallelize(*model, alone(), {}, model_folder_source(top / "saved", config).get());
      }(),
      doctest::Contains("score.weight"), c10::Error);
  train::Shardable<Decoder> model(config);
  auto parallel = train::parallelize(*model, alone(), {}, model_folder_source(top / "saved", config, &head).get());
  save_model_folder(top / "reward", top / "saved", *model, parallel);
  CHECK(read_decoder_config(top / "reward").reward_head);
  CHECK(test::read_file(top / "reward/config.json").find("Qwen3ForSequenceClassification") != std::string::npos);
}

TEST_CASE("a saved config names no code of its base's folder, and a reward model's class as transformers has it") {
  const TempDir top;
  const auto saved = [&](const std::string& name, const std::string& keys) {
    fs::create_directories(top / name);
    std::ofstream(top / name / "config.json")
        << "{" << keys << R"(, "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 64,
           "pad_token_id": 0})";
    auto config = read_decoder_config(top / name);
    config.reward_head = true;
    train::Shardable<Decoder> model(config);
    auto values = first_values(config, 7);
    auto parallel = train::parallelize(*model, alone(), {}, &values);
    save_model_folder(top / (name + "_reward"), top / name, *model, parallel);
    CHECK(read_decoder_config(top / (name + "_reward")).reward_head);
    return test::read_file(top / (name + "_reward") / "config.json");
  };
  const auto phi3 = saved("phi3", R"("model_type": "phi3", "architectures": ["Phi3ForCausalLM"],
                                     "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"})");
  CHECK(phi3.find("auto_map") == std::string::npos);
  CHECK(phi3.find("Phi3ForSequenceClassification") != std::string::npos);
  const auto gemma3 = saved("gemma3", R"("model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"])");
  CHECK(gemma3.find("Gemma3TextForSequenceClassification") != std::string::npos);
}

TEST_CASE("a folder that lacks a parameter is refused, though another source could give it") {
  const TempDir top;
  save_small(top / "saved", top / "base", small_config());
  auto config = read_decoder_config(top / "saved");
  config.layers = 3;
  config.windows = {0, 5, 5};
  auto otherwise = first_values(config, 7);
  train::Shardable<Decoder> model(config);
  CHECK_THROWS_WITH_AS(
      train::parallelize(*model, alone(), {}, model_folder_source(top / "saved", config, &otherwise).get()),
      doctest::Contains("the folder has no model.layers.2."), c10::Error);
}
