// SPDX-License-Identifier: Apache-2.0
// The planner's memory and traffic against what the allocator and the collectives count: jobs drawn from a seed, each
// trained for three steps.
// A program of its own, and every rank a process of its own, forked before this one uses LibTorch: ranks that are
// threads share the engine's pool, so what one allocates another uses, and what each counts depends on who came first.
// SEALIFT_PLAN_JOBS=200 SEALIFT_PLAN_SEED=7 by hand; a change of the engine or of a layer that takes more or less shows
// here.
#include "trainer/plan/memory.hpp"

#include "tests/support/counting_allocator.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/train/fixture.hpp"
#include "trainer/models/decoder.hpp"
#include "trainer/plan/meta_shape.hpp"
#include "trainer/plan/step_shape.hpp"
#include "trainer/tuning/qlora.hpp"

#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <sys/wait.h>

#include <unistd.h>
#include <climits>
#include <cmath>
#include <csignal>
#include <random>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

struct Job {
  DecoderConfig config;
  std::string tuner;
  Policy policy;
  plan::Way way;
  double dropout = 0;

  std::string text() const {
    return c10::str(config.family, config.tied_head ? " tied" : "", " ", config.width, "x", config.layers, " ", tuner,
                    dropout > 0 ? " dropout" : "", " ", plan::name_of(way.method), " ", way.ranks, "/", way.shard,
                    way.narrow() ? " bf16" : " fp32", way.batch.packed ? " packed" : "", " M", way.micro_batches, " ",
                    way.batch.rows, "x", way.batch.length, way.recompute ? " recompute" : "",
                    way.keep_gathered ? " keep" : "", way.reshard_after_forward ? "" : " no-reshard",
                    way.reduce_every_micro_batch ? " reduce-every" : "", way.offload_parameters ? " off-p" : "",
                    way.offload_gradients ? " off-g" : "");
  }
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  bool flag() { return below(2) == 1; }
  template <class Value>
  Value of(std::initializer_list<Value> values) {
    return *(values.begin() + below(values.size()));
  }

 private:
  std::mt19937_64 random_;
};

/// What families with experts beside Qwen's and Mixtral's have.
void draw_sparse(Draw& draw, const Family& row, DecoderConfig& config) {
  const auto layers = static_cast<std::size_t>(config.layers);
  ExpertConfig experts{.experts = 4, .per_token = 2, .width = 256, .layers = std::vector<bool>(layers, true)};
  if (row.experts == Family::Sigmoid) {
    experts.routing = Routing::Sigmoid;
    experts.layers[0] = false;
    experts.shared_width = 256;
  } else if (row.experts == Family::GptOss) {
    experts.routing = Routing::SoftmaxOfBest;
    experts.by_columns = experts.biases = true;
    experts.gate = ExpertGate::Clamped;
    experts.alpha = 1.7, experts.limit = 7;
    config.qkv_bias = config.out_bias = config.sinks = true;
  } else {
    experts.routing = Routing::SigmoidOfBest;
    experts.by_columns = true;
    experts.shared_width = 256;
    config.unturned.assign(layers, false);
    config.unturned.back() = true;
    config.turned_norm_eps = 1e-5;
    config.temperature = Temperature{.scale = 0.1, .floor = 32};
  }
  config.experts = experts;
  if (!row.latent) return;
  config.kv_heads = config.heads;
  config.latent = LatentConfig{.queries = draw.flag() ? 96 : 0, .keys = 64, .plain = 32, .turned = 16, .values = 32};
  config.head_dim = 48;
  config.attention_scale = 0.1;
}

std::string draw_family(Draw& draw) {
  return draw.of<std::string>({"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral", "olmo", "olmo2", "granite",
                               "phi3", "glm4", "gemma2", "gemma3_text", "deepseek_v3", "glm4_moe", "gpt_oss",
                               "llama4_text", "olmo3"});
}

DecoderConfig draw_config(Draw& draw, const std::string& family) {
  const auto& row = *find_family(family);
  DecoderConfig config{.family = family};
  config.vocabulary = draw.of<std::int64_t>({512, 3000});
  config.width = draw.of<std::int64_t>({128, 256});
  config.mlp_width = draw.of<std::int64_t>({384, 768});
  config.layers = draw.of<std::int64_t>({3, 5});
  config.heads = 8;
  config.kv_heads = draw.of<std::int64_t>({2, 8});
  config.head_dim = config.width / config.heads;
  config.max_positions = 512;
  config.windows.assign(static_cast<std::size_t>(config.layers), 0);
  config.qkv_bias = family == "qwen2";
  config.qk_norm = row.qk_norm != Family::NoQkNorm;
  config.qk_norm_whole = row.qk_norm == Family::OfAll;
  config.norm = row.norm;
  config.norms = row.norms;
  if (row.clips_qkv && draw.flag()) config.clip_qkv = 8;
  if (row.multipliers) {
    config.embedding_scale = 12, config.residual_scale = 0.2, config.logit_divisor = 8;
    config.attention_scale = 0.1;
  }
  config.fused_qkv = row.fused_qkv;
  config.fused_gate_up = row.fused_gate_up;
  config.rope.part = row.rotary_part.value_or(1);
  config.rope.by_neighbours = row.rope_by_neighbours;
  config.activation = row.activation;
  config.score_cap = row.score_cap.value_or(0);
  config.logit_cap = row.logit_cap.value_or(0);
  if (row.scales_embedding) config.embedding_scale = 12;
  config.tied_head = draw.below(3) == 0;
  if (row.experts == Family::Sigmoid || row.experts == Family::GptOss || row.experts == Family::Llama4)
    draw_sparse(draw, row, config);
  if (family == "qwen3_moe" || family == "mixtral") {
    config.experts = ExpertConfig{.experts = 4,
                                  .per_token = 2,
                                  .width = 256,
                                  .normalize = true,
                                  .layers = std::vector<bool>(static_cast<std::size_t>(config.layers), true),
                                  .mixtral_names = family == "mixtral"};
  }
  return config;
}

Job draw_job(std::uint64_t seed) {
  Draw draw(seed);
  const auto family = draw_family(draw);
  Job job{.config = draw_config(draw, family), .tuner = draw.of<std::string>({"none", "lora", "qlora"})};
  auto& [config, tuner, policy, way, dropout] = job;
  if (tuner != "none") dropout = draw.of({0.0, 0.05});
  way.method =
      draw.of({plan::Method::None, plan::Method::Ddp, plan::Method::Fsdp, plan::Method::Fsdp, plan::Method::Hsdp});
  if (tuner == "qlora" && way.method == plan::Method::None) way.method = plan::Method::Fsdp;
  way.ranks = way.method == plan::Method::None   ? 1
              : way.method == plan::Method::Hsdp ? 4
                                                 : draw.of<std::int64_t>({1, 2});
  way.shard = way.method == plan::Method::Fsdp ? way.ranks : way.method == plan::Method::Hsdp ? 2 : 1;
  way.micro_batches = draw.of<std::int64_t>({1, 1, 3});
  way.batch = {.rows = draw.of<std::int64_t>({1, 2}), .length = draw.of<std::int64_t>({64, 128})};
  const bool narrow = way.method != plan::Method::None && draw.flag();
  way.batch.compute_bytes = narrow ? 2 : 4;
  way.recompute = draw.flag();
  way.reshard_after_forward = draw.below(3) > 0;
  way.keep_gathered = way.shard > 1 && draw.flag();
  way.reduce_every_micro_batch = draw.below(4) == 0;
  way.offload_parameters = way.method != plan::Method::None && draw.below(5) == 0;
  way.offload_gradients = way.method != plan::Method::None && draw.below(5) == 0;
  using enum ParallelMethod;
  policy.method = std::array{None, Ddp, Fsdp, Hsdp}[static_cast<std::size_t>(way.method)];
  if (way.method == plan::Method::Hsdp) policy.shard_size = way.shard;
  policy.reshard_after_forward = way.reshard_after_forward;
  policy.keep_gathered = way.keep_gathered ? KeepGathered::Always : KeepGathered::Never;
  policy.reduce_every_micro_batch = way.reduce_every_micro_batch;
  policy.offload = {.parameters = way.offload_parameters, .gradients = way.offload_gradients};
  if (narrow) policy.precision = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat};
  return job;
}

struct Spread {
  Shardable<Decoder> model;
  Policy policy;
};

LoraOptions lora_of(const Job& job) {
  return {.rank = 4, .dropout = job.dropout};
}

Spread build(const Job& job) {
  const MetaDevice meta;
  const bool adapts = job.tuner != "none";
  const auto dtype = adapts && job.way.narrow() ? at::kBFloat16 : at::kFloat;
  Spread spread{Shardable<Decoder>(job.config, DecoderOptions{.recompute = job.way.recompute, .dtype = dtype}),
                job.policy};
  if (adapts) add_lora(*spread.model, lora_of(job));
  if (job.tuner == "qlora") spread.policy.store = store_projections(*spread.model);
  return spread;
}

struct Predicted {
  plan::RankMemory memory;
  plan::Volume sent;
};

Predicted predicted(const Job& job) {
  auto [model, policy] = build(job);
  const auto lora = lora_of(job);
  const auto shape = plan::model_shape(*model, job.config, policy, job.tuner == "none" ? nullptr : &lora);
  return {.memory = plan::predict_memory(shape, job.way), .sent = plan::volume_of(shape, job.way)};
}

TokenBatch tokens_of(const Job& job) {
  const auto rows = job.way.batch.rows, length = job.way.batch.length;
  const auto ids = torch::randint(0, job.config.vocabulary, {rows, length}, at::kLong);
  auto labels = ids.clone();
  labels.select(1, length - 1).fill_(kNoLabel);
  const auto example = job.way.batch.packed ? length / 2 : length;
  const auto places = at::arange(length).unsqueeze(0).repeat({rows, 1});
  return {
      .ids = ids, .positions = places.remainder(example), .segments = places.div(example, "floor"), .labels = labels};
}

struct Counted {
  std::int64_t peak = 0;  ///< the most that this process has taken after the first step
  plan::Volume sent;      ///< in the last step, by its forwards and backwards
};

plan::Volume volume_since(const TrafficReport& before, const TrafficReport& now) {
  return {.gather = now.all_gather.bytes - before.all_gather.bytes,
          .reduce = now.reduce_scatter.bytes - before.reduce_scatter.bytes,
          .copies = now.all_reduce.bytes - before.all_reduce.bytes};
}

/// Of this process, a rank of `world`.
Counted measured(const Job& job, const World& world) {
  CountingAllocator::install();
  auto& peak = CountingAllocator::all.peak;
  auto [model, policy] = build(job);
  auto groups = groups_of(world, policy);
  const auto values = first_values(job.config, 1);
  auto init = values;
  LoraSource adapted(init, lora_of(job), 1);
  auto parallel = parallelize(*model, groups, policy, job.tuner == "none" ? static_cast<Source*>(&init) : &adapted);
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-3));
  plan::Volume sent;
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    groups.world.barrier();
    if (step == 1) peak = CountingAllocator::all.live.load();
    const auto before = *groups.traffic;
    for (std::int64_t micro = 0; micro < job.way.micro_batches; ++micro) {
      parallel.set_micro_batch(micro, job.way.micro_batches);
      const auto batch = tokens_of(job);
      const auto loss = -std::get<0>(model(batch)).sum() / static_cast<double>(batch.ids.numel());
      loss.backward();
    }
    sent = volume_since(before, *groups.traffic);
    clip_grad_norm_(parallel, 1.0);
    optimizer.step();
  }
  const auto most = peak.load();
  groups.world.barrier();
  return {.peak = most, .sent = sent};
}

/// What a rank's process finds out: the plan is the same on each.
struct Figures {
  Predicted plan;
  Counted counted;
};
static_assert(std::is_trivially_copyable_v<Figures>);  // it goes through a pipe

/// Rank `rank` of `job`, in the child that was forked for it: its figures to `end`, or its error to stderr.
[[noreturn]] void be_rank(const Job& job, std::int64_t rank, const std::string& store, int end) {
  for (const int each : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(each, SIG_DFL);  // not doctest's
  alarm(120);  // a rank whose peers died waits for them no longer
  bool written = false;
  try {
    at::set_num_threads(1);
    const Figures figures{.plan = predicted(job),
                          .counted = measured(job, {.store = c10::make_intrusive<c10d::FileStore>(store, job.way.ranks),
                                                    .rank = rank,
                                                    .size = job.way.ranks,
                                                    .timeout = std::chrono::seconds(60)})};
    written = write(end, &figures, sizeof figures) == static_cast<ssize_t>(sizeof figures);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %ld: %s\n", rank, error.what());
  }
  _exit(written ? 0 : 1);
}

/// The figures of every rank of `job`, each from a process of its own.
std::vector<Figures> train_in_children(const Job& job) {
  const TempDir dir;
  const auto store = (dir.path() / "store").string();
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::vector<pid_t> children;
  for (std::int64_t rank = 0; rank < job.way.ranks; ++rank) {
    const auto child = fork();
    REQUIRE(child >= 0);
    if (child == 0) be_rank(job, rank, store, ends[1]);
    children.push_back(child);
  }
  close(ends[1]);
  std::vector<Figures> all;
  // Less than a pipe writes at once, so no rank's figures lie between another's.
  static_assert(sizeof(Figures) <= PIPE_BUF);
  for (Figures one; read(ends[0], &one, sizeof one) == static_cast<ssize_t>(sizeof one);) all.push_back(one);
  close(ends[0]);
  for (const auto child : children) waitpid(child, nullptr, 0);
  return all;
}

/// What the plan says of `job`, over what its hungriest rank took, less 1; traffic is checked to the byte.
double error_of(const Job& job, bool shows) {
  const auto text = job.text();
  CAPTURE(text);
  const auto ranks = train_in_children(job);
  REQUIRE(std::ssize(ranks) == job.way.ranks);
  const auto& [plan, sent] = ranks[0].plan;
  std::int64_t real = 0;
  for (const auto& rank : ranks) real = std::max(real, rank.counted.peak);
  const auto error = static_cast<double>(plan.sum()) / static_cast<double>(real) - 1;
  if (shows) {
    std::printf("%+6.2f %% %8ld KiB | p %ld g %ld m %ld w %ld a %ld l %ld b %ld s %ld | %s\n", 100 * error, real >> 10,
                plan.parameters >> 10, plan.gradients >> 10, plan.moments >> 10, plan.gathered >> 10,
                plan.activations >> 10, plan.logits >> 10, plan.buffers >> 10, plan.slack >> 10, text.c_str());
    std::fflush(stdout);
  }
  for (const auto& rank : ranks) {
    CHECK(rank.counted.sent.gather == sent.gather);
    CHECK(rank.counted.sent.reduce == sent.reduce);
    CHECK(rank.counted.sent.copies == sent.copies);
  }
  return error;
}

/// Of long rows, so that what is length × length, or fp32 of each token, weighs.
Job long_rows(const std::string& family, const std::string& tuner, bool narrow, bool packed, bool recompute) {
  Draw draw(3);
  Job job{.config = draw_config(draw, family), .tuner = tuner};
  auto& config = job.config;
  config.layers = 4;
  const std::vector<std::int64_t> alternating = {64, 0, 64, 0};
  const bool chunks = family == "llama4_text";
  config.windows = chunks || family == "llama" ? std::vector<std::int64_t>(4, 0) : alternating;
  if (chunks) config.chunks = alternating, config.unturned = {false, true, false, true};
  if (config.experts) config.experts->layers = {false, true, true, true};
  job.way = {.method = narrow ? plan::Method::Ddp : plan::Method::None,
             .batch = {.rows = 2, .length = 512, .compute_bytes = narrow ? 2 : 4, .packed = packed},
             .recompute = recompute};
  job.policy.method = narrow ? ParallelMethod::Ddp : ParallelMethod::None;
  if (narrow) {
    job.policy.precision = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat};
  }
  return job;
}

std::int64_t number_of(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace

TEST_CASE("a drawn job takes on a rank what the plan said, within 5 %, and sends that to the byte") {
  const auto jobs = number_of("SEALIFT_PLAN_JOBS", 8), seed = number_of("SEALIFT_PLAN_SEED", 1);
  const bool shows = std::getenv("SEALIFT_PLAN_JOBS") != nullptr;
  double sum = 0, alone = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < jobs; ++i) {
    CAPTURE(i);
    const auto job = draw_job(static_cast<std::uint64_t>(seed * 1000 + i));
    const auto text = job.text();
    CAPTURE(text);
    const auto error = error_of(job, shows);
    sum += std::abs(error);
    if (job.way.ranks == 1) alone += std::abs(error), ++count;
    CHECK(error > -0.05);
    CHECK(error < 0.05);
  }
  MESSAGE("mean error of " << jobs << " jobs: " << 100 * sum / static_cast<double>(jobs) << " %, of " << count
                           << " on one rank " << 100 * alone / static_cast<double>(std::max<std::int64_t>(1, count))
                           << " %");
}

TEST_CASE("masks of windows, chunks and packed rows, and routers in fp32, are in the plan: within 3 %") {
  const bool shows = std::getenv("SEALIFT_PLAN_JOBS") != nullptr;
  for (const auto& job :
       {long_rows("gpt_oss", "none", false, false, false), long_rows("gpt_oss", "lora", true, true, false),
        long_rows("gpt_oss", "lora", false, true, true), long_rows("llama4_text", "none", false, false, false),
        long_rows("llama4_text", "lora", true, true, false), long_rows("llama4_text", "none", true, false, true),
        long_rows("gemma3_text", "lora", false, false, false), long_rows("llama", "lora", false, true, true),
        long_rows("deepseek_v3", "none", true, false, false), long_rows("deepseek_v3", "lora", true, true, true),
        long_rows("glm4_moe", "lora", true, false, false), long_rows("glm4_moe", "none", false, true, false)}) {
    const auto text = job.text();
    CAPTURE(text);
    const auto error = error_of(job, shows);
    CHECK(error > -0.03);
    CHECK(error < 0.03);
  }
}
