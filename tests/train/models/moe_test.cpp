// SPDX-License-Identifier: Apache-2.0
// The sparse block against sums written out token by token, and a model of such blocks on many meshes against itself on
// one process: ranks that route differently, experts without tokens, experts spread over ranks.
// transformers' own blocks are in moe_peer_test.py. The reference runs the micro-batches of all ranks one after
// another, since the router's loss is one of a micro-batch and not a mean over tokens.
#include "trainer/models/moe.hpp"

#include "trainer/models/stored_experts.hpp"

#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"

using namespace sealift::test;
namespace st = sealift::trainer;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kWidth = 12, kVocabularyOfMoe = 17, kExperts = 4;

st::ExpertConfig config(std::int64_t experts = kExperts, std::int64_t per_token = 2, std::int64_t width = 6) {
  return {.experts = experts, .per_token = per_token, .width = width, .normalize = true, .loss_coefficient = 0.01};
}

/// sum over a token's experts of weight * down(silu(gate) * up), one token and expert after another.
at::Tensor written_out(st::SparseBlock& block, const at::Tensor& hidden, const st::ExpertConfig& config) {
  std::vector<at::Tensor> rows;
  for (const auto& token : hidden.reshape({-1, hidden.size(-1)}).unbind()) {
    const auto probabilities = at::softmax(at::mv(block->gate->weight, token), 0);
    auto [weights, experts] = probabilities.topk(config.per_token);
    if (config.normalize) weights = weights / weights.sum();
    auto sum = at::zeros_like(token);
    for (std::int64_t k = 0; k < config.per_token; ++k) {
      const auto expert = experts[k].item<std::int64_t>();
      const auto middle = at::mv(block->experts->gate_up_proj[expert], token);
      const auto gate = middle.narrow(0, 0, config.width), up = middle.narrow(0, config.width, config.width);
      sum = sum + weights[k] * at::mv(block->experts->down_proj[expert], at::silu(gate) * up);
    }
    rows.push_back(sum);
  }
  return at::stack(rows).view(hidden.sizes());
}

bool near(const at::Tensor& got, const at::Tensor& expected, double tolerance = 1e-5) {
  const auto scale = std::max(expected.detach().norm().item<double>(), 0.1);  // what is 0 but for rounding is 0
  return got.sizes() == expected.sizes() && (got - expected).detach().norm().item<double>() <= tolerance * scale;
}

/// Gradients of `output` by hidden and the block's parameters, of a sum in which each element counts differently.
std::vector<at::Tensor> gradients(const at::Tensor& output, const at::Tensor& hidden, st::SparseBlock& block) {
  auto inputs = block->parameters();
  inputs.push_back(hidden);
  const auto weights = torch::sin(torch::arange(output.numel())).view(output.sizes());
  return torch::autograd::grad({(output * weights).sum()}, inputs);
}

at::Tensor hidden_of(std::int64_t tokens, std::int64_t width = kWidth) {
  return torch::sin(torch::arange(tokens * width) * 0.37).view({1, tokens, width}).set_requires_grad(true);
}

TEST_CASE("a sparse block is the sum of its experts' answers, and so are its gradients") {
  // Rows of 48 and 24 bytes: at::_grouped_mm takes the first alone. One token, and one expert for each, are the ends.
  for (const auto& [experts, per_token, width, tokens] :
       {std::tuple{4, 2, 12, 9}, {4, 2, 6, 9}, {7, 3, 16, 1}, {3, 1, 4, 5}, {2, 2, 5, 4}}) {
    for (const bool normalize : {true, false}) {
      CAPTURE(experts);
      CAPTURE(normalize);
      auto options = config(experts, per_token, width);
      options.normalize = normalize;
      st::SparseBlock block(kWidth, options);
      fill(*block);
      const auto hidden = hidden_of(tokens);
      const auto [output, routed] = block->forward(hidden, {});
      const auto expected = written_out(block, hidden, options);
      CHECK(near(output, expected));
      CHECK(near(routed[1], torch::linear(hidden[0], block->gate->weight).softmax(-1).sum(0)));
      const auto got = gradients(output, hidden, block), wanted = gradients(expected, hidden, block);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(near(got[i], wanted[i]));
    }
  }
}

/// Sends every token to the first experts: hidden is positive where they look, and the others dislike it.
void favour_first(torch::nn::Module& model, std::int64_t favoured) {
  at::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) {
    if (item.key().ends_with("gate.weight")) item.value().narrow(0, favoured, kExperts - favoured).fill_(-5);
  }
}

TEST_CASE("all tokens may go to one expert; those without get gradients of zeros") {
  for (const std::int64_t width : {6, 12}) {
    const auto options = config(kExperts, 1, width);
    st::SparseBlock block(kWidth, options);
    fill(*block);
    favour_first(*block, 1);
    const auto hidden = hidden_of(7).detach().abs().set_requires_grad(true);
    const auto output = std::get<0>(block->forward(hidden, {}));
    CHECK(near(output, written_out(block, hidden, options)));
    output.sum().backward();
    for (const auto& parameter : {block->experts->gate_up_proj, block->experts->down_proj}) {
      CHECK(parameter.grad().sizes() == parameter.sizes());
      CHECK(parameter.grad()[0].norm().item<double>() > 0);
      CHECK(parameter.grad().narrow(0, 1, kExperts - 1).abs().max().item<double>() == 0);
    }
  }
}

TEST_CASE("a block without tokens answers nothing, and its gradients are zeros") {
  st::SparseBlock block(kWidth, config());
  fill(*block);
  const auto hidden = torch::empty({2, 0, kWidth}).set_requires_grad(true);
  const auto [output, routed] = block->forward(hidden, {});
  CHECK(output.sizes() == hidden.sizes());
  CHECK(routed.abs().max().item<double>() == 0);
  output.sum().backward();
  for (const auto& parameter : block->experts->parameters()) CHECK(parameter.grad().abs().max().item<double>() == 0);
}

TEST_CASE("grouped products say which shapes they take") {
  const auto counts = torch::tensor({1, 1});
  CHECK_THROWS_WITH(st::grouped_linear(torch::ones({2, 3}), torch::ones({2, 4, 5}), counts),
                    doctest::Contains("expected [rows, in], [experts, out, in]"));
  CHECK_THROWS_WITH(st::SparseBlock(kWidth, config(2, 3)), doctest::Contains("3 of 2 experts"));
}

TEST_CASE("a router tells how often it chose each expert and what it gave them, of the tokens that count") {
  st::SparseBlock block(kWidth, config());
  fill(*block);
  const auto hidden = hidden_of(6).view({2, 3, kWidth});
  const auto mask = torch::tensor({1, 0, 1, 1, 1, 0}).view({2, 3});
  for (const bool masked : {false, true}) {
    const auto routed = std::get<1>(block->forward(hidden, masked ? mask == 1 : at::Tensor()));
    auto expected = at::zeros({2, kExperts});
    const auto probabilities = torch::linear(hidden.view({6, kWidth}), block->gate->weight).softmax(-1);
    for (std::int64_t token = 0; token < 6; ++token) {
      if (masked && mask.view({-1})[token].item<std::int64_t>() == 0) continue;
      const auto best = std::get<1>(probabilities[token].topk(2));
      for (std::int64_t k = 0; k < 2; ++k) expected[0][best[k].item<std::int64_t>()] += 1;
      expected[1] += probabilities[token].detach();
    }
    CHECK((routed.scalar_type() == at::kFloat));
    CHECK(near(routed, expected));
    const auto weights = torch::arange(2 * kExperts).view({2, kExperts});
    const auto counted = masked ? mask.view({-1, 1}) : at::ones({6, 1});
    const auto got = torch::autograd::grad({(routed * weights).sum()}, {block->gate->weight});
    const auto wanted = torch::autograd::grad({(probabilities * counted * weights[1]).sum()}, {block->gate->weight});
    CHECK(near(got[0], wanted[0]));
  }
}

// A model of sparse blocks, trained on one process and on meshes.

class SparseLayerImpl : public torch::nn::Module {
 public:
  SparseLayerImpl()
      : up_(register_module("up", torch::nn::Linear(kWidth, kWidth))),
        mlp_(register_module("mlp", st::SparseBlock(kWidth, config()))) {}

  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& hidden) {
    const auto [answer, routed] = mlp_->forward(torch::sigmoid(up_(hidden)), {});
    return {hidden + answer, routed};
  }

 private:
  torch::nn::Linear up_;
  st::SparseBlock mlp_;
};
TORCH_MODULE(SparseLayer);

class SparseNetImpl : public torch::nn::Module {
 public:
  static constexpr std::int64_t kLayers = 2;

  SparseNetImpl() : tokens_(register_module("tokens", torch::nn::Embedding(kVocabularyOfMoe, kWidth))) {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), Shardable<Recomputed<SparseLayer>>()));
    }
  }

  /// ids [tokens] -> logits [tokens, vocabulary], and the routers' loss
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& ids) {
    auto hidden = tokens_(ids).unsqueeze(0);
    auto all = at::zeros({2, kExperts});
    for (auto& layer : layers) {
      const auto [next, routed] = layer(hidden);
      hidden = next;
      all = all + routed;
    }
    const auto mean = all / (kLayers * ids.size(0));
    return {torch::linear(hidden[0], tokens_->weight), (mean[0] * mean[1]).sum() * kExperts};
  }

  std::vector<Shardable<Recomputed<SparseLayer>>> layers;

 private:
  torch::nn::Embedding tokens_;
};
TORCH_MODULE(SparseNet);

struct MoeCase {
  Policy policy = {.method = ParallelMethod::None};
  std::int64_t world = 1;
  std::int64_t expert_ranks = 1;
  std::int64_t pieces = 4;  ///< micro-batches of all ranks together
  std::int64_t favoured = kExperts;
  bool recompute = false;
  bool from_rank_0 = false;  ///< first values from rank 0's memory, not from a source
  double router_loss = 0.5;  ///< its weight in the loss
};

struct MoeOutcome {
  std::vector<double> losses;                   ///< of a step, over all ranks
  std::vector<double> norms;                    ///< of the gradients
  std::map<std::string, at::Tensor> gradients;  ///< whole, of the first step
  std::map<std::string, at::Tensor> parameters;
  TrafficReport traffic;  ///< of the last step's forwards and backwards on rank 0
};

/// The values of a model by name, of which `favoured` experts get all tokens.
InitFunction first_values(std::int64_t favoured) {
  return {[favoured](const std::string& name, at::Tensor tensor, const at::Generator&) {
            const auto phase = static_cast<double>(std::hash<std::string>{}(name) % 100);
            tensor.copy_(torch::sin(torch::arange(tensor.numel()) * 0.91 + phase).view(tensor.sizes()) * 0.4);
            if (name.ends_with("gate.weight")) tensor.narrow(0, favoured, kExperts - favoured).fill_(-5);
          },
          1};
}

/// Tokens of piece `piece`: 3 to 7 of them, so that ranks have different numbers.
at::Tensor ids_of(std::int64_t step, std::int64_t piece) {
  return (torch::arange(3 + (piece * 3 + step) % 5) * 5 + piece * 3 + step * 7) % kVocabularyOfMoe;
}

std::map<std::string, at::Tensor> wholes(Parallel& parallel, bool gradients) {
  std::map<std::string, at::Tensor> result;
  for (auto parameter : parallel.parameters()) {
    if (gradients) {
      REQUIRE(parameter.shard.grad().defined());
      parameter.shard = parameter.shard.grad().clone();
    }
    const auto numel = c10::multiply_integers(parameter.sizes);
    result[parameter.name] =
        sealift::train::detail::gather_slab(parameter, parallel.holders(), 0, numel).view(parameter.sizes);
  }
  return result;
}

/// Runs `body(net, parallel)` of a model that was spread as `each` says.
template <class Body>
void with_model(const World& world, const MoeCase& each, const Body& body) {
  std::optional<Shardable<SparseNet>> net;
  {
    std::optional<MetaDevice> meta;
    if (!each.from_rank_0 || world.rank > 0) meta.emplace();
    net.emplace();
  }
  auto source = first_values(each.favoured);
  if (each.from_rank_0 && world.rank == 0) {
    at::NoGradGuard no_grad;
    for (auto& item : (*net)->named_parameters()) {
      source.read(item.key(), item.value().sizes(), 0, item.value().view({-1}));
    }
  }
  for (auto& layer : (*net)->layers) layer->recomputes = each.recompute;
  auto groups = make_groups(world, each.policy, st::kExpertAxis, each.expert_ranks);
  auto parallel = parallelize(**net, groups, each.policy, each.from_rank_0 ? nullptr : &source);
  body(*net, parallel);
}

at::Tensor loss_of(Shardable<SparseNet>& net, std::int64_t step, std::int64_t piece, double router_weight = 0.5) {
  const auto ids = ids_of(step, piece);
  const auto [logits, router_loss] = net(ids);
  const auto loss =
      torch::nn::functional::cross_entropy(logits, (ids * 3 + 1) % kVocabularyOfMoe,
                                           torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  return router_weight > 0 ? loss + router_weight * router_loss : loss;
}

MoeOutcome train(const World& world, const MoeCase& each, std::int64_t steps = 3) {
  MoeOutcome outcome;
  with_model(world, each, [&](auto& net, Parallel& parallel) {
    auto& groups = parallel.groups();
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2).eps(1e-3));
    const auto micro_batches = each.pieces / each.world;
    for (std::int64_t step = 0; step < steps; ++step) {
      std::int64_t tokens = 0;
      for (std::int64_t piece = 0; piece < each.pieces; ++piece) tokens += ids_of(step, piece).size(0);
      parallel.set_gradient_divide_factor(static_cast<double>(tokens));
      optimizer.zero_grad();
      auto sum = torch::zeros({1}, torch::kDouble);
      *groups.traffic = {};
      for (std::int64_t micro = 0; micro < micro_batches; ++micro) {
        parallel.set_micro_batch(micro, micro_batches);
        const auto loss = loss_of(net, step, world.rank * micro_batches + micro);
        sum += loss.detach().to(torch::kDouble);
        loss.backward();
      }
      outcome.traffic = *groups.traffic;
      groups.world.all_reduce(sum).wait();
      outcome.losses.push_back(sum.template item<double>() / static_cast<double>(tokens));
      if (step == 0) outcome.gradients = wholes(parallel, true);
      outcome.norms.push_back(clip_grad_norm_(parallel, 0.5).template item<double>());
      optimizer.step();
    }
    outcome.parameters = wholes(parallel, false);
  });
  return outcome;
}

MoeOutcome train_on_ranks(const MoeCase& each) {
  if (each.world == 1) return train({}, each);
  std::vector<MoeOutcome> outcomes(static_cast<std::size_t>(each.world));
  on_ranks(each.world,
           [&](const World& world) { outcomes[static_cast<std::size_t>(world.rank)] = train(world, each); });
  for (const auto& outcome : outcomes) {
    for (const auto& [name, tensor] : outcome.parameters) CHECK(tensor.equal(outcomes[0].parameters.at(name)));
  }
  return outcomes[0];
}

void check_same(const MoeOutcome& got, const MoeOutcome& expected) {
  for (std::size_t step = 0; step < expected.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(got.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-5));
    CHECK(got.norms[step] == doctest::Approx(expected.norms[step]).epsilon(1e-5));
  }
  REQUIRE(got.gradients.size() == expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    CAPTURE(name);
    CHECK(near(got.gradients.at(name), gradient));
    CHECK(near(got.parameters.at(name), expected.parameters.at(name), 1e-4));
  }
}

/// On one process: with `favoured` experts and as many pieces.
const MoeOutcome& alone(std::int64_t pieces, std::int64_t favoured) {
  static std::map<std::pair<std::int64_t, std::int64_t>, MoeOutcome> known;
  const auto [found, is_new] = known.try_emplace({pieces, favoured});
  if (is_new) found->second = train_on_ranks({.pieces = pieces, .favoured = favoured});
  return found->second;
}

TEST_CASE("ranks that route differently, also past some experts, train as one process does, by the same collectives") {
  for (const auto& [policy, world] : {std::pair{ddp(), 2}, {fsdp(), 2}, {fsdp(), 4}, {hsdp(2), 4}}) {
    CAPTURE(to_string(policy.method));
    CAPTURE(world);
    const MoeCase each{.policy = policy, .world = world};
    const auto all = train_on_ranks(each);
    check_same(all, alone(4, kExperts));
    auto few = each;
    few.favoured = 2;
    few.recompute = true;
    const auto skewed = train_on_ranks(few);
    check_same(skewed, alone(4, 2));
    CHECK(skewed.gradients.at("layer0.mlp.experts.down_proj")[3].abs().max().item<double>() == 0);
    CHECK(skewed.traffic == all.traffic);
    CHECK(all.traffic.all_to_all == Traffic{});
  }
}

/// All ways to spread experts over 2 and 4 ranks beside each method.
std::vector<MoeCase> expert_meshes() {
  return {{.policy = ddp(), .world = 2, .expert_ranks = 2},  {.policy = fsdp(), .world = 2, .expert_ranks = 2},
          {.policy = ddp(), .world = 4, .expert_ranks = 2},  {.policy = ddp(), .world = 4, .expert_ranks = 4},
          {.policy = fsdp(), .world = 4, .expert_ranks = 2}, {.policy = fsdp(), .world = 4, .expert_ranks = 4},
          {.policy = hsdp(2), .world = 4, .expert_ranks = 2}};
}

TEST_CASE("experts spread over ranks train as one process does: each method, accumulated, recomputed, idle experts") {
  for (auto each : expert_meshes()) {
    CAPTURE(to_string(each.policy.method));
    CAPTURE(each.world);
    CAPTURE(each.expert_ranks);
    const auto plain = train_on_ranks(each);
    check_same(plain, alone(4, kExperts));
    // In a layer's forward the numbers of tokens, tokens and answers travel, in its backward the last two.
    const auto passes = SparseNetImpl::kLayers * each.pieces / each.world;
    CHECK(plain.traffic.all_to_all.calls == 5 * passes);

    each.pieces = 8;
    each.recompute = true;
    each.favoured = 2;  // the second half of the ranks' experts gets nothing
    const auto skewed = train_on_ranks(each);
    check_same(skewed, alone(8, 2));
    CHECK(skewed.traffic.all_to_all.calls == 8 * 2 * passes);  // the forward again
    CHECK(skewed.gradients.at("layer1.mlp.experts.gate_up_proj")[3].abs().max().item<double>() == 0);
  }
}

/// The pieces of `rank` in step `step`, where it has `count` in all and a step takes `micro` of each rank.
std::vector<std::int64_t> pieces_of(std::int64_t rank, std::int64_t count, std::int64_t micro, std::int64_t step) {
  std::vector<std::int64_t> pieces;
  for (auto i = step * micro; i < std::min((step + 1) * micro, count); ++i) pieces.push_back(10 * rank + i);
  return pieces;
}

/// Trains on counts[rank] pieces of each rank, those of a rank of `world` alone or, on one process, all; a loss is a
/// mean over the tokens of a step.
MoeOutcome train_uneven(const World& world, const MoeCase& each, const std::vector<std::int64_t>& counts,
                        std::int64_t micro) {
  MoeOutcome outcome;
  const auto steps = (*std::max_element(counts.begin(), counts.end()) + micro - 1) / micro;
  with_model(world, each, [&](auto& net, Parallel& parallel) {
    torch::optim::AdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-2).eps(1e-3));
    Join join(parallel);
    for (std::int64_t step = 0; step < steps; ++step) {
      std::int64_t tokens = 0;
      std::vector<std::int64_t> mine;
      for (std::size_t rank = 0; rank < counts.size(); ++rank) {
        const auto number = static_cast<std::int64_t>(rank);
        for (const auto piece : pieces_of(number, counts[rank], micro, step)) {
          tokens += ids_of(step, piece).size(0);
          if (each.world == 1 || world.rank == number) mine.push_back(piece);
        }
      }
      optimizer.zero_grad();
      REQUIRE(join.next(static_cast<std::int64_t>(mine.size())));
      parallel.set_gradient_divide_factor(static_cast<double>(tokens));
      auto sum = torch::zeros({1}, torch::kDouble);
      for (std::int64_t m = 0; m < join.micro_batches(); ++m) {
        const bool has_data = join.begin(m);
        const auto piece = has_data ? mine[static_cast<std::size_t>(m)] : 10 * world.rank;
        const auto loss = loss_of(net, step, piece, each.router_loss);
        if (has_data) sum += loss.detach().to(torch::kDouble);
        (loss * (has_data ? 1 : kInfinity)).backward();
      }
      parallel.groups().world.all_reduce(sum).wait();
      outcome.losses.push_back(sum.template item<double>() / static_cast<double>(tokens));
      if (step == 0) outcome.gradients = wholes(parallel, true);
      outcome.norms.push_back(clip_grad_norm_(parallel, 0.5).template item<double>());
      optimizer.step();
    }
    CHECK_FALSE(join.next(0));
    outcome.parameters = wholes(parallel, false);
  });
  return outcome;
}

TEST_CASE("ranks with spread experts run out of data: the model is that of one process with all pieces") {
  for (const auto& each : {MoeCase{.policy = fsdp(), .world = 2, .expert_ranks = 2},
                           MoeCase{.policy = ddp(), .world = 4, .expert_ranks = 2, .recompute = true},
                           MoeCase{.policy = fsdp(), .world = 4, .expert_ranks = 2, .router_loss = 0},
                           MoeCase{.policy = hsdp(2), .world = 4, .expert_ranks = 2}}) {
    CAPTURE(to_string(each.policy.method));
    CAPTURE(each.world);
    const auto counts = each.world == 2 ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{3, 1, 0, 2};
    const std::int64_t micro = each.recompute ? 1 : 2;
    const auto expected = train_uneven({}, {.router_loss = each.router_loss}, counts, micro);
    on_ranks(each.world, [&](const World& world) { check_same(train_uneven(world, each, counts, micro), expected); });
  }
}

TEST_CASE("what ranks do not share of experts they do not hold: memory and traffic of the parts") {
  on_ranks(4, [](const World& world) {
    with_model(world, {.policy = fsdp(), .world = 4, .expert_ranks = 2}, [&](auto&, Parallel& parallel) {
      CHECK(parallel.is_split());
      CHECK(parallel.holders().size() == 4);
      std::int64_t held = 0;
      for (const auto& parameter : parallel.parameters()) {
        if (!parameter.name.ends_with("experts.down_proj")) continue;
        CHECK(parameter.sizes == std::vector<std::int64_t>{kExperts, kWidth, 6});
        CHECK(parameter.copies == 1);
        const auto half = kExperts * kWidth * 6 / 2;
        CHECK(parameter.offset / half == world.rank % 2);
        held += parameter.shard.numel();
      }
      auto sum = torch::full({1}, held);
      parallel.groups().world.all_reduce(sum).wait();
      CHECK(sum.item<std::int64_t>() == SparseNetImpl::kLayers * kExperts * kWidth * 6);
    });
    with_model(world, {.policy = ddp(), .world = 4, .expert_ranks = 2}, [&](auto&, Parallel& parallel) {
      CHECK(parallel.holders().size() == 2);
      for (const auto& parameter : parallel.parameters()) {
        const bool is_part = parameter.name.find("experts") != std::string::npos;
        CHECK(parameter.copies == (is_part ? 2 : 4));
        CHECK(parameter.replicated == !is_part);
        CHECK(parameter.shard.numel() * (is_part ? 2 : 1) == c10::multiply_integers(parameter.sizes));
      }
    });
  });
}

TEST_CASE("experts start from rank 0's memory too, and in bf16 as well") {
  for (auto each : {MoeCase{.policy = ddp(), .world = 2, .expert_ranks = 2},
                    MoeCase{.policy = fsdp(), .world = 4, .expert_ranks = 2}}) {
    each.from_rank_0 = true;
    check_same(train_on_ranks(each), alone(4, kExperts));
    each.policy.precision.param_dtype = at::kBFloat16;
    each.policy.precision.reduce_dtype = at::kFloat;
    const auto narrow = train_on_ranks(each);
    for (std::size_t step = 0; step < narrow.losses.size(); ++step) {
      CHECK(narrow.losses[step] == doctest::Approx(alone(4, kExperts).losses[step]).epsilon(2e-2));
    }
  }
}

TEST_CASE("a checkpoint of spread experts continues on any mesh") {
  const TempDir folder;
  const std::vector<MoeCase> meshes{{.policy = ddp(), .world = 4, .expert_ranks = 2},
                                    {.policy = fsdp(), .world = 4, .expert_ranks = 2},
                                    {.policy = fsdp(), .world = 2, .expert_ranks = 2},
                                    {}};
  std::map<std::string, at::Tensor> saved;
  fs::path written;
  for (std::size_t from = 0; from < 2; ++from) {
    const auto path = folder.path() / std::to_string(from);
    on_ranks(meshes[from].world, [&](const World& world) {
      with_model(world, meshes[from], [&](auto& net, Parallel& parallel) {
        torch::optim::AdamW optimizer(parallel.shards());
        loss_of(net, 0, world.rank).backward();
        optimizer.step();
        const auto whole = save_checkpoint(path, *net, parallel, &optimizer, {.step = 1});
        auto values = wholes(parallel, false);
        if (world.rank > 0) return;
        saved = std::move(values);
        written = whole;
      });
    });
    for (auto into : meshes) {
      CAPTURE(into.world);
      into.favoured = 1;  // other values
      const auto load = [&](const World& world) {
        with_model(world, into, [&](auto& net, Parallel& parallel) {
          torch::optim::AdamW optimizer(parallel.shards());
          load_checkpoint(written, *net, parallel, &optimizer);
          for (const auto& [name, value] : wholes(parallel, false)) CHECK(value.equal(saved.at(name)));
        });
      };
      into.world == 1 ? load({}) : on_ranks(into.world, load);
    }
  }
}

TEST_CASE("experts are stored one by one by the names of either family, and read back by ranges on any mesh") {
  const auto stored = st::stored_tensors("model.layers.3.mlp.experts.gate_up_proj", {2, 6, 5});
  REQUIRE(stored.size() == 4);
  CHECK(stored[1].name == "model.layers.3.mlp.experts.0.up_proj.weight");
  CHECK(stored[2].name == "model.layers.3.mlp.experts.1.gate_proj.weight");
  CHECK(stored[2].sizes == std::vector<std::int64_t>{3, 5});
  CHECK(st::stored_tensors("a.block_sparse_moe.experts.down_proj", {2, 6, 5})[1].name ==
        "a.block_sparse_moe.experts.1.w2.weight");
  CHECK(st::stored_tensors("a.block_sparse_moe.experts.gate_up_proj", {2, 6, 5})[3].name ==
        "a.block_sparse_moe.experts.1.w3.weight");
  CHECK(st::stored_tensors("a.mlp.gate.weight", {2, 5})[0].name == "a.mlp.gate.weight");
  CHECK_THROWS_WITH(st::stored_tensors("a.mlp.experts.gate_up_proj", {2, 5, 5}),
                    doctest::Contains("expected [experts, rows, columns]"));

  const TempDir folder;
  const auto path = folder.path() / "model.safetensors";
  std::map<std::string, at::Tensor> values;
  on_ranks(4, [&](const World& world) {
    with_model(world, {.policy = fsdp(), .world = 4, .expert_ranks = 2}, [&](auto& net, Parallel& parallel) {
      export_safetensors(path, *net, parallel, {.slab_bytes = 100, .file_tensors = st::stored_tensors});
      auto whole = wholes(parallel, false);
      if (world.rank == 0) values = std::move(whole);
    });
  });
  const auto header = read_header(InputFile(path));
  CHECK(header.tensors.size() == 1 + 2 * (2 + 1 + 3 * kExperts));
  for (const auto& into :
       {MoeCase{.policy = ddp(), .world = 2, .expert_ranks = 2}, MoeCase{.policy = fsdp(), .world = 2}}) {
    on_ranks(2, [&](const World& world) {
      Shardable<SparseNet> net;
      SafetensorsSource files(path);
      st::FileTensorsSource source(files);
      auto groups = make_groups(world, into.policy, st::kExpertAxis, into.expert_ranks);
      auto parallel = parallelize(*net, groups, into.policy, &source);
      for (const auto& [name, value] : wholes(parallel, false)) CHECK(value.equal(values.at(name)));
    });
  }
}

TEST_CASE("experts that cannot be spread, and meshes that do not fit, are refused on every rank") {
  on_ranks(3, [](const World& world) {
    Shardable<SparseNet> net;
    auto groups = make_groups(world, fsdp(), st::kExpertAxis, 3);
    CHECK_THROWS_WITH(parallelize(*net, groups, fsdp()), doctest::Contains("over the 3 ranks of axis 'ep'"));
    CHECK(net->layers[0]->parameters()[0].defined());
  });
  on_ranks(4, [](const World& world) {
    CHECK_THROWS_WITH(make_groups(world, hsdp(2), st::kExpertAxis, 4), doctest::Contains("the axis must divide them"));
    Shardable<SparseNet> net;
    CHECK_FALSE(parallelize(*net, make_groups(world, fsdp(), st::kExpertAxis, 1), fsdp()).is_split());
    const auto forgotten = make_groups(world, fsdp(), st::kExpertAxis, 2).over({"shard"}, {"replicate"});
    Shardable<SparseNet> other;
    CHECK_THROWS_WITH(parallelize(*other, forgotten, fsdp()), doctest::Contains("make them by make_groups(world,"));
  });
}

}  // namespace
