// SPDX-License-Identifier: Apache-2.0
// A rehearsal against what it rehearses: the same job over Gloo, with threads as ranks and values in its tensors.
// In memory_test's program, since bytes of the CPU are counted by replacing the allocator of the whole process.
// The models are made; only the counts of a 72B on 1,024 ranks are of one that nobody could run here.
#include "trainer/rehearse/rehearse.hpp"

#include "tests/support/counting_allocator.hpp"
#include "tests/train/fixture.hpp"
#include "trainer/models/families.hpp"
#include "trainer/models/moe.hpp"
#include "trainer/objectives/causal.hpp"
#include "trainer/tuning/lora.hpp"

#include <fstream>

using namespace sealift::test;
using namespace sealift::trainer;

namespace {

/// A config.json in the temporary folder, with the rest of a family's keys.
class ConfigFile {
 public:
  ConfigFile(std::int64_t width, std::int64_t layers, std::int64_t experts = 0)
      : path_(std::filesystem::temp_directory_path() /
              c10::str("rehearse_", getpid(), "_", width, "_", layers, "_", experts, ".json")) {
    std::ofstream(path_) << c10::str(
        R"({"model_type": ")", experts > 0 ? "qwen3_moe" : "qwen3", R"(", "hidden_size": )", width,
        R"(, "intermediate_size": )", 4 * width, R"(, "num_hidden_layers": )", layers,
        R"(, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": )", width / 4,
        R"(, "vocab_size": 61, "max_position_embeddings": 512, "hidden_act": "silu", "rms_norm_eps": 1e-6,
           "tie_word_embeddings": false, "rope_theta": 10000.0, "dtype": "float32")",
        experts > 0 ? c10::str(R"(, "num_experts": )", experts, R"(, "num_experts_per_tok": 2,
           "moe_intermediate_size": )",
                               width, R"(, "norm_topk_prob": true, "router_aux_loss_coef": 0.001,
           "decoder_sparse_step": 1, "mlp_only_layers": [])")
                    : std::string(),
        "}");
  }
  /// Of a family by its name, with the keys that it has beside the usual ones.
  ConfigFile(const std::string& family, const std::string& more, int key_heads = 2)
      : path_(std::filesystem::temp_directory_path() / c10::str("rehearse_", getpid(), "_", family, ".json")) {
    std::ofstream(path_) << c10::str(R"({"model_type": ")", family, R"(", "hidden_size": 256, "intermediate_size": 768,
        "num_hidden_layers": 6, "num_attention_heads": 4, "head_dim": 64, "vocab_size": 61,
        "max_position_embeddings": 512, "pad_token_id": 0, "dtype": "float32", "num_key_value_heads": )",
                                     key_heads, more, "}");
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A made config.json of each family: families of `sparse` have experts.
class FamilyFiles {
 public:
  FamilyFiles() {
    const auto factors = "[" + c10::Join(", ", std::vector<double>(32, 1.5)) + "]";
    const std::string window = R"(, "sliding_window": 64)",
                      sigmoid = R"(, "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
                          "moe_intermediate_size": 128, "n_shared_experts": 1, "first_k_dense_replace": 1)";
    add("llama", "");
    add("mistral", window);
    add("mixtral", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)");
    add("qwen2", R"(, "use_sliding_window": true, "max_window_layers": 2)" + window);
    add("qwen3", "");
    add("qwen3_moe", R"(, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128)");
    add("olmo", R"(, "clip_qkv": 8.0)");
    add("olmo2", "");
    add("olmo3", window);
    add("granite", R"(, "embedding_multiplier": 12.0, "logits_scaling": 8.0)");
    add("phi3", c10::str(R"(, "rope_scaling": {"type": "longrope", "short_factor": )", factors, R"(, "long_factor": )",
                         factors, "}"));
    add("glm4", "");
    add("gemma2", window);
    add("gemma3_text", window);
    add("deepseek_v3",
        sigmoid + R"(, "q_lora_rank": 96, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
            "v_head_dim": 32)",
        4);
    add("glm4_moe", sigmoid);
    add("gpt_oss", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)" + window);
    add("llama4_text", R"(, "intermediate_size_mlp": 512, "num_local_experts": 4, "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 2, "attention_chunk_size": 64)");
  }

  std::filesystem::path operator[](const std::string& family) const { return files_.at(family)->path(); }

  static std::vector<std::string> sparse() {
    std::vector<std::string> names;
    for (const auto& family : families()) {
      if (family.experts != Family::NoExperts) names.emplace_back(family.name);
    }
    return names;
  }

 private:
  void add(const std::string& family, const std::string& more, int key_heads = 2) {
    files_.emplace(family, std::make_unique<ConfigFile>(family, more, key_heads));
  }
  std::map<std::string, std::unique_ptr<ConfigFile>> files_;
};

using ByGroup = std::map<std::string, std::vector<std::string>>;

/// The labels of all collectives that `watch`'s rank has issued, in order, by group.
ByGroup issued_by_group(RankWatch& watch) {
  ByGroup labels;
  const auto counts = watch.issued().report(0, {}).count;
  for (std::size_t group = 0; group < counts.size(); ++group) {
    for (std::uint64_t first = 0;; first += 16) {
      const auto report = watch.issued().report(0, {{0, {.group = group, .number = first}}});
      const auto name = report.waits->first;
      if (name.ends_with(" check") || first >= counts.at(name)) break;
      for (auto number = first; number < std::min(first + 16, counts.at(name)); ++number) {
        labels[name].push_back(report.issued.at({name, number}).text);
      }
    }
  }
  return labels;
}

ByGroup by_group(const std::vector<Rehearsal::Collective>& all) {
  ByGroup labels;
  for (const auto& each : all) labels[each.group].push_back(each.label);
  return labels;
}

/// What came after `before`.
ByGroup since(const ByGroup& before, ByGroup now) {
  for (auto& [group, labels] : now) {
    const auto old = before.find(group);
    if (old != before.end())
      labels.erase(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(old->second.size()));
  }
  std::erase_if(now, [](const auto& each) { return each.second.empty(); });
  return now;
}

/// One value everywhere, without memory of its own.
class SameValues final : public Source {
 public:
  void read(const std::string&, at::IntArrayRef, std::int64_t, at::Tensor out) override { out.fill_(0.02); }
};

/// What a rank did with values in its tensors.
struct Done {
  ByGroup start, step;
  TrafficReport before, after;  ///< around the second step
  std::int64_t shard_bytes = 0;
  Rehearsal::Peaks peaks;  ///< of the CPU's allocator, where the rank is alone in the process
};

DecoderConfig config_of(const RehearsalOptions& options) {
  return parse_decoder_config(read_text(options.model, 1 << 20), "made");
}

/// The job of `options` on `world`, as the trainer's loop would do it.
Done run(const RehearsalOptions& options, const World& world, const GroupOptions& how = {}) {
  const auto config = config_of(options);
  auto policy = options.policy;
  Shardable<Decoder> model = [&] {
    const MetaDevice meta;
    return Shardable<Decoder>(config, DecoderOptions{.recompute = options.recompute, .dtype = options.parameters});
  }();
  if (options.adapt) options.adapt(*model, policy);
  auto& bytes = CountingAllocator::all;
  const auto base = bytes.live.load();
  bytes.peak = base;
  const auto take = [&](std::int64_t& peak) { peak = std::max(peak, bytes.peak.exchange(bytes.live) - base); };
  auto groups = options.expert_ranks > 1 ? make_groups(world, policy, kExpertAxis, options.expert_ranks, how)
                                         : make_groups(world, make_mesh(policy, world.size), how);
  SameValues values;
  auto parallel = parallelize(*model, groups, policy, &values);
  Done done;
  take(done.peaks.built);
  const auto labels = [&] { return groups.watch ? issued_by_group(*groups.watch) : ByGroup(); };
  done.start = labels();
  FusedAdamW optimizer(parallel.shards(), torch::optim::AdamWOptions(1e-4));
  const auto step = [&] {
    for (std::int64_t micro = 0; micro < options.micro_batches; ++micro) {
      parallel.set_micro_batch(micro, options.micro_batches);
      const auto ids = torch::arange(options.rows * options.tokens).remainder(61).view({options.rows, options.tokens});
      const auto [logs, router] = model(TokenBatch{.ids = ids, .labels = ids.clone()});
      auto loss = causal_loss(logs, ids.numel()).sum * (1.0 / static_cast<double>(ids.numel()));
      if (router.defined()) loss = loss + router * config.experts->loss_coefficient;
      take(done.peaks.forward);
      loss.backward();
      take(done.peaks.backward);
    }
    if (options.max_grad_norm > 0) clip_grad_norm_(parallel, options.max_grad_norm);
    optimizer.step();
    take(done.peaks.optimizer);
    optimizer.zero_grad();
  };
  step();
  const auto after_first = labels();
  done.before = *groups.traffic;
  step();
  done.after = *groups.traffic;
  done.step = since(after_first, labels());
  for (const auto& shard : parallel.shards()) done.shard_bytes += static_cast<std::int64_t>(shard.nbytes());
  return done;
}

void check_traffic(const Rehearsal& rehearsed, const Done& done) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> got, wanted;
  for (const auto& [op, calls, bytes] : rehearsed.step_sent) got[op] = {calls, bytes};
  const auto add = [&](const char* name, const Traffic& now, const Traffic& then) {
    if (now.calls > then.calls) wanted[name] = {now.calls - then.calls, now.bytes - then.bytes};
  };
  add("all_gather", done.after.all_gather, done.before.all_gather);
  add("reduce_scatter", done.after.reduce_scatter, done.before.reduce_scatter);
  add("all_reduce", done.after.all_reduce, done.before.all_reduce);
  add("broadcast", done.after.broadcast, done.before.broadcast);
  add("all_to_all", done.after.all_to_all, done.before.all_to_all);
  // Tokens fall on experts' ranks evenly in a rehearsal, and as their values say in a job.
  if (wanted.contains("all_to_all")) got["all_to_all"].second = wanted["all_to_all"].second;
  CHECK(got == wanted);
}

RehearsalOptions job(const std::filesystem::path& model, Policy policy, std::int64_t ranks) {
  return {.model = model,
          .policy = std::move(policy),
          .ranks = ranks,
          .rank = ranks - 1,
          .rows = 1,
          .tokens = 32,
          .imitated = Imitated::Cpu};
}

Policy halved(Policy policy) {
  policy.precision = {.param_dtype = at::kBFloat16, .reduce_dtype = at::kFloat, .output_dtype = at::kFloat};
  return policy;
}

/// What `call` throws, without a stack.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

/// What a rank of the real job says that cannot start.
std::string real_message(const RehearsalOptions& options) {
  return message_of([&] { on_ranks(options.ranks, [&](const World& world) { run(options, world); }); });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a rehearsed step issues the collectives of the real one: order, labels, groups, calls and bytes") {
  const ConfigFile dense(64, 3), sparse(64, 2, 4);
  auto accumulates = fsdp();
  accumulates.keep_gathered = KeepGathered::Never;
  auto keeps = halved(fsdp());
  keeps.keep_gathered = KeepGathered::Always;
  std::vector<RehearsalOptions> jobs;
  for (const std::int64_t ranks : {2, 4}) {
    jobs.push_back(job(dense.path(), fsdp(), ranks));
    jobs.push_back(job(dense.path(), halved(fsdp()), ranks));
    jobs.push_back(job(dense.path(), ddp(), ranks));
    jobs.push_back(job(sparse.path(), fsdp(), ranks));
    jobs.push_back(job(dense.path(), accumulates, ranks));
    jobs.push_back(job(dense.path(), keeps, ranks));
    for (auto i = jobs.size() - 2; i < jobs.size(); ++i) jobs[i].micro_batches = 3;
  }
  jobs.push_back(job(dense.path(), hsdp(2), 4));
  const FamilyFiles files;
  for (const auto& family : FamilyFiles::sparse()) jobs.push_back(job(files[family], fsdp(), 2));
  for (const auto& options : jobs) {
    CAPTURE(options.model);
    CAPTURE(to_string(options.policy.method));
    CAPTURE(options.ranks);
    CAPTURE(options.micro_batches);
    const auto rehearsed = rehearse(options);
    Done done;
    on_ranks(options.ranks, [&](const World& world) {
      const auto mine = run(options, world);
      if (world.rank == options.rank) done = mine;
    });
    // A rehearsal is told its memory, so ranks need not ask each other how much is free.
    for (auto& [group, labels] : done.start)
      std::erase_if(labels, [](const auto& l) { return has(l, "'free memory'"); });
    CHECK(by_group(rehearsed.start) == done.start);
    REQUIRE(!rehearsed.step.empty());
    CHECK(by_group(rehearsed.step) == done.step);
    check_traffic(rehearsed, done);
  }
}

TEST_CASE("experts spread over ranks are rehearsed with the groups and the calls of the real job") {
  const ConfigFile sparse(64, 2, 4);
  const FamilyFiles files;
  std::vector<RehearsalOptions> jobs{job(sparse.path(), fsdp(), 4), job(files["gpt_oss"], hsdp(2), 4),
                                     job(files["deepseek_v3"], ddp(), 4)};
  for (const auto& family : FamilyFiles::sparse()) jobs.push_back(job(files[family], halved(fsdp()), 4));
  for (auto& options : jobs) {
    CAPTURE(options.model);
    CAPTURE(to_string(options.policy.method));
    options.expert_ranks = 2;
    const auto rehearsed = rehearse(options);
    Done done;
    on_ranks(4, [&](const World& world) {
      const auto mine = run(options, world);
      if (world.rank == options.rank) done = mine;
    });
    CHECK(by_group(rehearsed.step) == done.step);
    CHECK(by_group(rehearsed.step).contains("ep1"));
    check_traffic(rehearsed, done);
  }
}

TEST_CASE("each family that is read is rehearsed, whole and with adapters") {
  const FamilyFiles files;
  for (const auto& family : families()) {
    CAPTURE(family.name);
    auto options = job(files[family.name], halved(fsdp()), 4);
    const auto whole = rehearse(options);
    CHECK(whole.family == family.name);
    CHECK(whole.trainable == whole.parameters);
    options.adapt = [](DecoderImpl& model, Policy&) { add_lora(model, {.rank = 4}); };
    const auto adapted = rehearse(options);
    CHECK(adapted.trainable < whole.parameters / 10);
    CHECK(adapted.peaks.resting < whole.peaks.resting);
  }
}

TEST_CASE("what a model was built with values is on the rehearsed device with the rest, and counted there") {
  const ConfigFile dense(64, 2);
  auto options = job(dense.path(), fsdp(), 4);
  const auto plain = rehearse(options).peaks;
  constexpr std::int64_t kElements = 1 << 20;
  at::Tensor table, frozen;
  options.adapt = [&](DecoderImpl& model, Policy& policy) {
    table = model.register_buffer("table", torch::ones({kElements}, at::kFloat));
    frozen = model.register_parameter("frozen", torch::ones({kElements}, at::kFloat), /*requires_grad=*/false);
    policy.ignored_parameters = {"frozen"};
  };
  const auto with_values = rehearse(options).peaks;
  CHECK(table.is_meta());
  CHECK(frozen.is_meta());
  CHECK(with_values.resting == plain.resting + 8 * kElements);
}

TEST_CASE("the rehearsed peak is that of the CPU's allocator, within 5 %") {
  CountingAllocator::install();
  at::set_num_threads(1);
  const ConfigFile dense(256, 6), sparse(128, 4, 8);
  const FamilyFiles files;
  struct Case {
    std::filesystem::path model;
    Policy policy;
    std::int64_t ranks;
    bool recompute;
  };
  for (const auto& [model, policy, ranks, recompute] : {Case{dense.path(), fsdp(), 4, true},
                                                        Case{dense.path(), fsdp(), 4, false},
                                                        Case{dense.path(), ddp(), 4, true},
                                                        Case{dense.path(), hsdp(2), 4, true},
                                                        Case{sparse.path(), fsdp(), 4, true},
                                                        Case{dense.path(), fsdp(), 1, true},
                                                        Case{dense.path(), halved(fsdp()), 4, true},
                                                        Case{files["phi3"], fsdp(), 4, true},
                                                        Case{files["phi3"], halved(fsdp()), 4, false},
                                                        Case{files["glm4"], fsdp(), 4, false},
                                                        Case{files["gemma2"], fsdp(), 4, true},
                                                        Case{files["gemma2"], halved(fsdp()), 4, false},
                                                        Case{files["gemma3_text"], fsdp(), 4, false},
                                                        Case{files["olmo"], fsdp(), 4, false},
                                                        Case{files["olmo2"], fsdp(), 4, true},
                                                        Case{files["olmo3"], fsdp(), 4, false},
                                                        Case{files["granite"], fsdp(), 4, false},
                                                        Case{files["mixtral"], fsdp(), 4, false},
                                                        Case{files["gpt_oss"], fsdp(), 4, false},
                                                        Case{files["gpt_oss"], halved(fsdp()), 4, true},
                                                        Case{files["llama4_text"], fsdp(), 4, true},
                                                        Case{files["glm4_moe"], halved(fsdp()), 4, false},
                                                        Case{files["deepseek_v3"], fsdp(), 4, false}}) {
    auto options = job(model, policy, ranks);
    options.tokens = 256;
    options.recompute = recompute;
    const auto rehearsed = rehearse(options);
    // One rank with values, whose other ranks are not there: what they would send is not looked at.
    OtherRanks others(options.rank, ranks);
    auto world = others.world(at::kCPU);
    const auto done = run(options, world, others.group_options());
    const auto compare = [&](const std::string& part, std::int64_t got, std::int64_t wanted) {
      CAPTURE(model);
      CAPTURE(to_string(policy.method));
      CAPTURE(ranks);
      CAPTURE(recompute);
      CAPTURE(part);
      CAPTURE(got);
      CAPTURE(wanted);
      CHECK(std::abs(got - wanted) <= wanted / 20);
    };
    compare("built", rehearsed.peaks.built, done.peaks.built);
    // Of forward alone the CPU's count has what its pool keeps for the next unit, which a device's engine does not.
    compare("backward", rehearsed.peaks.backward, done.peaks.backward);
    compare("optimizer", rehearsed.peaks.optimizer, done.peaks.optimizer);
    compare("most", rehearsed.peaks.most(), done.peaks.most());
  }
}

TEST_CASE("what the engine refuses, a rehearsal refuses in its words") {
  const ConfigFile dense(64, 2), sparse(64, 2, 6);
  auto uneven = job(dense.path(), hsdp(3), 4);
  auto group = job(dense.path(), fsdp(), 4);
  group.policy.reshard_group = 3;
  auto experts = job(sparse.path(), fsdp(), 4);
  experts.expert_ranks = 4;
  const ConfigFile mixtral("mixtral", R"(, "num_local_experts": 6, "num_experts_per_tok": 2)"),
      gpt_oss("gpt_oss", R"(, "num_local_experts": 6, "num_experts_per_tok": 2, "sliding_window": 64)");
  auto of_mixtral = experts, of_gpt_oss = experts;
  of_mixtral.model = mixtral.path(), of_gpt_oss.model = gpt_oss.path();
  auto axis = job(sparse.path(), fsdp(), 4);
  axis.expert_ranks = 3;
  auto tied = job(dense.path(), fsdp(), 4);
  tied.adapt = [](DecoderImpl& model, Policy&) {
    auto modules = model.named_modules();
    modules["model.layers.0"]->register_module("tied", modules["model.layers.1.self_attn.q_proj"]);
  };
  auto alone = job(dense.path(), {.method = ParallelMethod::None}, 4);
  for (const auto& [options, says] : {std::pair{uneven, "it must divide the world"},
                                      {group, "reshard_group is 3"},
                                      {experts, "their number must divide its first size"},
                                      {of_mixtral, "their number must divide its first size"},
                                      {of_gpt_oss, "their number must divide its first size"},
                                      {axis, "the axis must divide them"},
                                      {tied, "are tied but lie in units"},
                                      {alone, "would train as many models"}}) {
    const auto rehearsed = message_of([&] { rehearse(options); });
    CHECK(has(rehearsed, says));
    CHECK(rehearsed == real_message(options));
    auto without_memory = options;  // nothing is allocated before it is refused
    without_memory.memory = 1;
    CHECK(message_of([&] { rehearse(without_memory); }) == rehearsed);
  }
  auto none = job(dense.path(), fsdp(), 4);
  none.expert_ranks = 2;
  CHECK(has(message_of([&] { rehearse(none); }), "which has no experts; leave it out"));
}

TEST_CASE("a rehearsal ends where memory, communicators or the store's time do") {
  const ConfigFile dense(64, 2), sparse(64, 2, 4);
  auto small = job(dense.path(), fsdp(), 4);
  const auto needs = rehearse(small).peaks.most();
  small.memory = needs;
  CHECK(rehearse(small).peaks.most() == needs);
  small.memory = needs - 1;
  const auto memory = message_of([&] { rehearse(small); });
  CHECK(has(memory, "out of memory: tried to allocate"));
  CHECK(has(memory, "of unit '"));

  auto many = job(sparse.path(), fsdp(), 4);
  many.expert_ranks = 2;
  many.limits.communicators = 3;
  CHECK(rehearse(many).messages.communicators == 3);
  many.limits.communicators = 2;
  const auto communicators = message_of([&] { rehearse(many); });
  CHECK(has(communicators, "rank 3 stops at connect"));
  CHECK(has(communicators, "communicator 3 of a rank that may have 2"));

  auto slow = job(dense.path(), fsdp(), 1024);
  slow.limits = {.store_requests_a_second = 1e6, .timeout = std::chrono::seconds(2)};
  CHECK(rehearse(slow).messages.awaited_keys == 1024);
  slow.limits.store_requests_a_second = 1e5;
  const auto store = message_of([&] { rehearse(slow); });
  CHECK(has(store, ", 1022 of 1024 did not come to make_groups within 2000 ms"));
}

TEST_CASE("the checkpoint of all ranks has each element and its two moments once") {
  const ConfigFile dense(64, 3);
  for (const auto& policy : {fsdp(), ddp(), hsdp(2)}) {
    CAPTURE(to_string(policy.method));
    std::int64_t bytes = 0, parameters = 0;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      auto options = job(dense.path(), policy, 4);
      options.rank = rank;
      const auto found = rehearse(options);
      bytes += found.checkpoint.bytes;
      parameters = found.parameters;
    }
    CHECK(bytes == 12 * parameters);
  }
}

TEST_CASE("a 72B on 1,024 ranks: its units, its collectives, and no rank of it holds more than a card") {
  RehearsalOptions options{
      .model = SEALIFT_REHEARSAL_CONFIGS "/qwen2_72b.json", .policy = halved(fsdp()), .ranks = 1024, .rank = 0};
  options.checks_order = false;
  options.memory = std::int64_t{80} << 30;
  const auto found = rehearse(options);
  CHECK(found.parameters == 72'706'203'648);
  REQUIRE(found.units.size() == 81);
  CHECK(found.units[1].parameters == 877'684'736);
  CHECK(found.units[1].whole_bytes == 1024 * found.units[1].shard_bytes / 2);
  std::int64_t gathers = 0, reductions = 0;
  for (const auto& each : found.step) {
    gathers += each.label.starts_with("all_gather of unit");
    reductions += each.label.starts_with("reduce_scatter");
  }
  CHECK(gathers == 1 + 80 + 80);
  CHECK(reductions == 81);
  CHECK(found.peaks.resting >= 12 * found.parameters / 1024);
  CHECK(found.peaks.resting < 12 * found.parameters / 1024 + (std::int64_t{64} << 20));
  CHECK(found.messages.host_peers == 1023);
  CHECK(found.json()["units"].size() == 81);
  CHECK(has(found.text(), "model.layers.N x 80: 877684736 parameters"));
}
