// SPDX-License-Identifier: Apache-2.0
// The planner's arithmetic on models that are only numbers; no LibTorch.
// What it says of real ones is held to the allocator's count in memory_plan_test.cpp.
// Figures are written out by hand, so that a formula is not compared with itself.
#include "trainer/plan/table.hpp"

#include "trainer/plan/advice.hpp"
#include "trainer/plan/auto_method.hpp"
#include "trainer/plan/checkpoint_cost.hpp"
#include "trainer/settings/fine_tune_options.hpp"

#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <set>

using namespace sealift::trainer::plan;

namespace {

ParameterShape matrix(const std::string& name, std::int64_t rows, std::int64_t columns, bool trained = true) {
  return {.name = name, .numel = rows * columns, .row = columns, .trained = trained};
}

/// A decoder of `layers` like Llama's, trained whole in fp32.
ModelShape llama(std::int64_t layers, std::int64_t width, std::int64_t hidden, std::int64_t vocabulary) {
  ModelShape shape;
  shape.decoder = {.family = "llama",
                   .vocabulary = vocabulary,
                   .width = width,
                   .mlp_width = hidden,
                   .layers = layers,
                   .heads = 32,
                   .kv_heads = 32,
                   .head_dim = width / 32,
                   .sparse = {}};
  shape.units.push_back(
      {"", {matrix("embed", vocabulary, width), matrix("norm", width, 1), matrix("head", vocabulary, width)}});
  for (std::int64_t i = 0; i < layers; ++i) {
    UnitShape unit{.path = "layers." + std::to_string(i), .parameters = {}};
    for (const auto* name : {"q", "k", "v", "o"}) unit.parameters.push_back(matrix(name, width, width));
    for (const auto* name : {"gate", "up"}) unit.parameters.push_back(matrix(name, hidden, width));
    unit.parameters.push_back(matrix("down", width, hidden));
    shape.units.push_back(unit);
  }
  return shape;
}

}  // namespace

TEST_CASE("ddp keeps 16 bytes of each parameter, and fsdp shares them among its ranks") {
  const auto shape = llama(8, 1024, 4096, 1000);
  const auto all = shape.parameters();
  const Way ddp{.method = Method::Ddp, .ranks = 4, .batch = {.rows = 1, .length = 8}};
  const auto held = predict_memory(shape, ddp);
  CHECK(held.parameters == 4 * all);
  CHECK(held.gradients >= 4 * all);
  CHECK(held.moments == 8 * all);
  CHECK(held.gathered == 0);
  Way fsdp = ddp;
  fsdp.method = Method::Fsdp;
  fsdp.shard = 4;
  const auto shared = predict_memory(shape, fsdp);
  CHECK(shared.parameters == doctest::Approx(all).epsilon(0.01));
  CHECK(shared.moments == doctest::Approx(2 * all).epsilon(0.01));
  CHECK(shared.gathered > 0);
  CHECK(shared.sum() < held.sum() / 2);
}

TEST_CASE("what is too large to be counted is refused, and so are units that are no blocks") {
  auto shape = llama(2, 64, 128, 100);
  const auto of = [&](std::int64_t rows, std::int64_t length) {
    return predict_memory(shape, {.batch = {.rows = rows, .length = length}}).sum();
  };
  CHECK(of(1, 16) > 0);
  CHECK_THROWS_WITH_AS(of(1 << 20, std::int64_t{1} << 30), doctest::Contains("ask for fewer"), std::invalid_argument);
  CHECK_THROWS_AS(of(std::int64_t{1} << 40, std::int64_t{1} << 40), std::invalid_argument);
  shape.decoder.windows = {16, 0};
  CHECK(of(1, 1 << 20) > of(1, 16));
  CHECK_THROWS_WITH_AS(of(1, 1 << 22), doctest::Contains("ask for fewer"), std::invalid_argument);  // its mask
  CHECK_THROWS_AS(of(1, std::int64_t{1} << 33), std::invalid_argument);
  shape.units.pop_back();
  CHECK_THROWS_WITH_AS(of(1, 16), doctest::Contains("expected a root and 2 layers, got 2 units"),
                       std::invalid_argument);
}

TEST_CASE("a mask of the square of a row: of a host's windows, of chunks and sinks everywhere") {
  auto shape = llama(2, 64, 128, 100);
  const std::int64_t length = 4096, square = length * length;
  const auto more = [&](Kernels kernels, bool packed, bool recompute) {
    Way way{.batch = {.rows = 3, .length = length, .compute_bytes = 2, .kernels = kernels}, .recompute = recompute};
    auto plain = shape;
    plain.decoder.windows = plain.decoder.chunks = {};
    const auto without = predict_memory(plain, way).activations;
    way.batch.packed = packed;
    return predict_memory(shape, way).activations - without;
  };
  // Made from distances in 8 bytes and what is seen, in bytes.
  const auto holds = [&](std::int64_t bytes, std::int64_t rows, std::int64_t masks) {
    CHECK(bytes >= masks * rows * 2 * square);
    CHECK(bytes <= masks * rows * 2 * square + (8 + 2 * rows) * square);
  };
  CHECK(more(Kernels::Host, false, false) == 0);
  shape.decoder.windows = {64, 0};
  holds(more(Kernels::Host, false, true), 1, 1);  // one for all rows
  CHECK(more(Kernels::Cuda, false, true) == 0);   // by lengths
  CHECK(more(Kernels::Cuda, true, true) == 0);
  holds(more(Kernels::Host, true, true), 3, 2);  // of the window's layer and the other's
  shape.decoder.windows = {};
  shape.decoder.chunks = {64, 0};
  holds(more(Kernels::Cuda, false, true), 3, 1);
}

TEST_CASE("a machine is read strictly: what has no unit or another's is refused with what was expected") {
  Machine machine;
  read_machine("2x8x80GB", machine);
  CHECK(machine.hosts == 2);
  CHECK(machine.cards == 8);
  CHECK(machine.memory == 80'000'000'000);
  read_machine("4x24GiB", machine);
  CHECK(machine.hosts == 1);
  CHECK(machine.memory == std::int64_t{24} << 30);
  for (const auto* text : {"", "8", "x80GB", "8x", "8x80", "0x8x80GB", "8x-80GB", "2x8x80GBs", "8x80gb", "1x2x3x80GB",
                           "8x80 GB", "99999999999999999999x8x80GB", "8xnanGB", "8xinfGB", "8x0GB"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_machine(text, machine), doctest::Contains("expected"), std::invalid_argument);
  }
  CHECK(read_rate("--link", "400Gbit") == 50e9);
  CHECK(read_rate("--link", "25GB/s") == 25e9);
  CHECK(read_rate("--memory-rate", "3.35TB/s") == doctest::Approx(3.35e12));
  CHECK(read_flops("--flops", "1.5P") == 1.5e15);
  CHECK(read_seconds("--latency", "20us") == doctest::Approx(2e-5));
  CHECK_THROWS_WITH(read_seconds("--latency", "20"), "--latency is '20'; expected a time as 20us or 0.5ms");
  CHECK_THROWS_WITH(read_rate("--link", "400"), "--link is '400'; expected a rate as 400Gbit or 25GB/s");
  CHECK_THROWS(read_rate("--link", "400Gb"));  // bits or bytes: nobody knows
  CHECK_THROWS(read_flops("--flops", "-1T"));
}

TEST_CASE("a rank sends what the formulas of ZeRO say: 2, and 3 with parameters gathered twice") {
  const auto shape = llama(4, 256, 512, 100);
  const double all = static_cast<double>(shape.parameters()), root = 2 * 100 * 256 + 256;
  Way way{.method = Method::Ddp, .ranks = 4, .micro_batches = 3, .batch = {.length = 8}};
  CHECK(volume_of(shape, way).sum() == doctest::Approx(2 * 0.75 * all * 4).epsilon(0.01));
  way.method = Method::Fsdp;
  way.shard = 4;
  // f M (2P - R) b and f P b; the root stays whole from forward to backward.
  CHECK(volume_of(shape, way).gather == doctest::Approx(0.75 * 3 * (2 * all - root) * 4).epsilon(0.02));
  CHECK(volume_of(shape, way).reduce == doctest::Approx(0.75 * all * 4).epsilon(0.02));
  way.keep_gathered = true;
  CHECK(volume_of(shape, way).gather == doctest::Approx(0.75 * all * 4).epsilon(0.02));
  way.keep_gathered = false;
  way.reshard_after_forward = false;
  way.reduce_every_micro_batch = true;
  CHECK(volume_of(shape, way).sum() == doctest::Approx(0.75 * 3 * all * 8).epsilon(0.02));
  way.shard = 2;  // and copies of it: 2 (Q - 1) / Q of a shard
  CHECK(volume_of(shape, way).copies == doctest::Approx(all / 2 * 4).epsilon(0.02));
}

TEST_CASE("a pass moves bytes whatever its tokens: gradients made and collected, and a host's weights three times") {
  const auto shape = llama(2, 256, 512, 100);
  const std::int64_t block = 4 * 256 * 256 + 3 * 256 * 512;
  Way way{.method = Method::Ddp, .ranks = 4, .batch = {.length = 8, .compute_bytes = 2, .kernels = Kernels::Cuda}};
  auto unit = step_shape(shape, way).units.at(1);
  CHECK(unit.forward_memory_bytes == 0);
  CHECK(unit.backward_memory_bytes == block * (2 + 2 + 4 + 4));
  CHECK(step_shape(shape, way).optimizer_bytes == 32 * shape.parameters());
  way.batch = {.length = 8, .compute_bytes = 4, .kernels = Kernels::Host};
  // Beside it a host moves activations, which grow with the rows: what is left without rows are the weights.
  const auto of_weights = [&](auto bytes) {
    const auto at = [&](std::int64_t rows) {
      auto more = way;
      more.batch.rows = rows;
      return bytes(step_shape(shape, more).units.at(1));
    };
    CHECK(at(2) > at(1));
    return 2 * at(1) - at(2);
  };
  CHECK(of_weights([](const auto& each) { return each.forward_memory_bytes; }) == block * 12);
  CHECK(of_weights([](const auto& each) { return each.backward_memory_bytes; }) == block * (12 + 16));
  way.recompute = true;
  CHECK(of_weights([](const auto& each) { return each.backward_memory_bytes; }) == block * (24 + 16));
  way.method = Method::Fsdp;
  way.shard = 4;
  // Over Gloo a reduce-scatter sends what it must and no more, and a core adds up what comes: four parts read, a sum
  // written.
  CHECK(step_shape(shape, way).units.at(1).reduce_bytes == doctest::Approx(0.75 * 4 * block).epsilon(0.01));
  const double all = static_cast<double>(shape.parameters());
  CHECK(step_shape(shape, way).optimizer_bytes == doctest::Approx((32 / 4 + 4 * 5 / 4) * all).epsilon(0.01));
  way.micro_batches = 2;
  way.reduce_every_micro_batch = true;
  CHECK(step_shape(shape, way).optimizer_bytes == doctest::Approx((32 / 4 + 2 * 4 * 5 / 4) * all).epsilon(0.01));
  way.batch.kernels = Kernels::Cuda;
  CHECK(step_shape(shape, way).optimizer_bytes == doctest::Approx(32 / 4 * all).epsilon(0.01));
  CHECK(volume_of(shape, way).reduce == doctest::Approx(2 * 0.75 * 4 * all).epsilon(0.01));
}

TEST_CASE("adapters cost a host more than their multiplications: thin products, a dropout each, and what they write") {
  const auto whole = llama(2, 256, 512, 100);
  auto adapted = whole;
  adapted.lora_rank = 8;
  adapted.lora_dropout = 0.05;
  for (std::size_t i = 1; i < adapted.units.size(); ++i) {
    for (auto& each : adapted.units[i].parameters) each.trained = false;
    adapted.units[i].parameters.push_back({.name = "q_proj.lora_A.weight", .numel = 8 * 256, .row = 256});
    adapted.units[i].parameters.push_back({.name = "q_proj.lora_B.weight", .numel = 8 * 256, .row = 8});
  }
  const double tokens = 32, products = 2 * tokens * 2 * 8 * 256, drawn = tokens * 256;
  Way way{.method = Method::Ddp, .ranks = 2, .batch = {.length = 32, .kernels = Kernels::Cuda}};
  const auto of = [&](const ModelShape& shape) { return step_shape(shape, way).units.at(1); };
  CHECK(of(adapted).forward_flops - of(whole).forward_flops == doctest::Approx(products));
  CHECK(of(adapted).backward_flops - of(whole).backward_flops / 2 == doctest::Approx(2 * products));
  way.batch.kernels = Kernels::Host;
  CHECK(of(adapted).forward_flops - of(whole).forward_flops == doctest::Approx(4 * products + 400 * drawn));
  CHECK(of(adapted).backward_flops - of(whole).backward_flops / 2 == doctest::Approx(4 * 2 * products));
  CHECK(of(adapted).forward_memory_bytes > of(whole).forward_memory_bytes);
  // QLoRA: a host is measured to move 24 bytes for each element that it decodes, a GPU assumed to move 10.
  auto encoded = adapted;
  for (std::size_t i = 1; i < encoded.units.size(); ++i) encoded.units[i].parameters.front().stored = Stored::Nf4;
  const auto decoding = [&] {
    return step_shape(encoded, way).optimizer_bytes - step_shape(adapted, way).optimizer_bytes;
  };
  const auto on_host = decoding();
  way.batch.kernels = Kernels::Cuda;
  CHECK(on_host * 10 == decoding() * 24);
  CHECK(decoding() > 0);
  way.batch.kernels = Kernels::Host;
  way.recompute = true;
  CHECK(of(adapted).backward_flops - of(whole).backward_flops * 2 / 3 ==
        doctest::Approx(4 * 3 * products + 400 * drawn));
}

TEST_CASE("rows that fit come first, by time; the others say what they lack; the first is a job") {
  const Candidate candidate{"none", 2, llama(8, 1024, 4096, 32000)};
  Question question{.length = 512, .rows = 32, .tokens = 1'000'000'000};
  read_machine("2x4x3GB", question.machine);
  const auto rows = make_table({candidate}, question);
  REQUIRE(rows.size() > 20);
  bool fits = true;
  double before = 0;
  std::size_t lacking = 0;
  for (const auto& row : rows) {
    CHECK((fits || !row.fits));
    fits = row.fits;
    if (row.fits) {
      CHECK(row.time.seconds >= before * 0.998);
      CHECK(row.memory.sum() <= question.machine.memory);
      CHECK(row.reason.empty());
      before = row.time.seconds;
    } else {
      ++lacking;
      CHECK(row.memory.sum() > question.machine.memory);
      CHECK(row.reason.find("lacks") == 0);
    }
    CHECK(row.way.batch.rows * row.way.micro_batches * 8 == 32);
  }
  CHECK(lacking > 0);
  CHECK(rows.front().gpu_hours == doctest::Approx(8 * 1e9 / rows.front().tokens_per_second / 3600));
  sealift::test::TempDir folder;
  for (const auto& row : rows) {
    const auto file = folder / "job.toml";
    std::ofstream(file) << job_file(row, "model", "data.tokens");
    const auto job = read_fine_tune_options(sealift::trainer::Task::Sft, {.config_file = file.string()});
    CAPTURE(job_file(row, "model", "data.tokens"));
    CHECK(job.parallel_method == name_of(row.way.method));
    CHECK(job.tuner_type == "none");
    CHECK(job.per_device_train_batch_size == row.way.batch.rows);
    CHECK(job.micro_batches(8) == row.way.micro_batches);
    CHECK(job.gradient_checkpointing == row.way.recompute);
    CHECK(job.offload.size() == (row.way.offload_parameters ? 2 : row.way.offload_moments ? 1 : 0));
    CHECK(job.max_length == 512);
  }
  const auto text = table_text(rows, 5);
  CHECK(text.find("GPU hours") != std::string::npos);
}

TEST_CASE("Daly's interval is Young's for short checkpoints, and never more than the time between failures") {
  CHECK(daly_interval(10, 1e6) == doctest::Approx(std::sqrt(2 * 10 * 1e6)).epsilon(0.01));
  CHECK(daly_interval(300, 100) == 100);
}

TEST_CASE("parallel_method auto takes what is fastest of what fits, with the activations of the job's batch") {
  const Candidate candidate{"none", 2, llama(8, 1024, 4096, 32000)};
  const Way asked{.micro_batches = 2, .batch = {.rows = 4, .length = 1024}};
  const auto chosen = [&](std::int64_t memory, std::int64_t hosts = 2, std::int64_t rows = 4) {
    Machine machine{.hosts = hosts, .cards = 4 / hosts, .memory = memory};
    auto way = asked;
    way.batch.rows = rows;
    return choose_method(candidate, way, machine, Kernels::Host);
  };
  const auto much = std::int64_t{1} << 40;
  CHECK(chosen(much).method == "ddp");
  REQUIRE(chosen(much).lines.size() == 3);
  CHECK(chosen(much).lines[0].find("parallel_method auto: ddp takes") == 0);
  CHECK(chosen(much).lines[0].find("chosen") != std::string::npos);
  const auto of = [&](Method method, std::int64_t shard) {
    auto way = asked;
    way.method = method;
    way.ranks = 4;
    way.shard = shard;
    way.batch.compute_bytes = 2;
    return static_cast<std::int64_t>(static_cast<double>(predict_memory(candidate.shape, way).sum()) / kPlannedPart);
  };
  const auto ddp = of(Method::Ddp, 1), hsdp = of(Method::Hsdp, 2);
  CHECK(chosen(ddp + 16).method == "ddp");
  CHECK(chosen(ddp - 16).method == "hsdp");
  CHECK(chosen(ddp - 16).shard_size == 2);
  CHECK(chosen(ddp - 16).lines[1].find("ddp takes") != std::string::npos);
  CHECK(chosen(ddp - 16).lines[1].find("does not fit") != std::string::npos);
  CHECK(chosen(ddp + 16, 2, 16).method != "ddp");  // the same memory, a larger batch
  CHECK(chosen(hsdp - 16).method == "fsdp");
  CHECK(chosen(ddp - 16, 1).method == "fsdp");  // one host has all
  CHECK(chosen(0).method == "fsdp");
  CHECK(chosen(0).lines[0].find("an unknown amount") != std::string::npos);
  CHECK(choose_method(candidate, asked, {.hosts = 1, .cards = 1}, Kernels::Host).method == "none");
}

namespace {

struct Sizes {
  std::int64_t layers, width, hidden, vocabulary, heads, kv_heads;
};
constexpr Sizes kQwen7{28, 3584, 18944, 152064, 28, 4}, kLlama7{32, 4096, 11008, 32000, 32, 32},
    kTinyLlama{22, 2048, 5632, 32000, 32, 4}, kLlama13{40, 5120, 13824, 32000, 40, 40},
    kLlama70{80, 8192, 28672, 32000, 64, 8};

/// A model of these sizes in bf16, as `tuner` trains it: adapters of rank 8 beside each projection.
Candidate candidate_of(const Sizes& sizes, const std::string& tuner) {
  const bool adapts = tuner != "none";
  Candidate candidate{tuner, 2, {}};
  auto& shape = candidate.shape;
  shape.decoder = {.vocabulary = sizes.vocabulary,
                   .width = sizes.width,
                   .mlp_width = sizes.hidden,
                   .layers = sizes.layers,
                   .heads = sizes.heads,
                   .kv_heads = sizes.kv_heads,
                   .head_dim = sizes.width / sizes.heads,
                   .sparse = {}};
  shape.lora_rank = adapts ? 8 : 0;
  shape.lora_dropout = adapts ? 0.05 : 0;
  const auto own = [&](ParameterShape each) {
    each.trained = !adapts;
    each.element_bytes = adapts ? 2 : 4;
    return each;
  };
  UnitShape root{"",
                 {own(matrix("embed", sizes.vocabulary, sizes.width)), own(matrix("norm", sizes.width, 1)),
                  own(matrix("head", sizes.vocabulary, sizes.width))}};
  shape.units.push_back(root);
  const auto keys = sizes.kv_heads * shape.decoder.head_dim;
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    UnitShape unit{.path = std::to_string(i), .parameters = {}};
    const auto project = [&](const std::string& name, std::int64_t out, std::int64_t in) {
      unit.parameters.push_back(own(matrix(name, out, in)));
      if (tuner == "qlora") unit.parameters.back().stored = Stored::Nf4;
      if (!adapts) return;
      unit.parameters.push_back(matrix(name + ".lora_A", 8, in));
      unit.parameters.push_back(matrix(name + ".lora_B", out, 8));
    };
    for (const auto* name : {"q", "o"}) project(name, sizes.width, sizes.width);
    for (const auto* name : {"k", "v"}) project(name, keys, sizes.width);
    for (const auto* name : {"gate", "up"}) project(name, sizes.hidden, sizes.width);
    project("down", sizes.width, sizes.hidden);
    shape.units.push_back(unit);
  }
  return candidate;
}

std::vector<Row> table_of(const Sizes& sizes, const std::string& tuner, const std::string& machine, double link = 300e9,
                          std::int64_t rows = 64) {
  Question question{.length = 2048, .rows = rows, .tokens = 1'000'000'000};
  read_machine(machine, question.machine);
  question.machine.link = link;
  return make_table({candidate_of(sizes, tuner)}, question);
}

bool any_fits(const std::vector<Row>& rows, Method method, bool offloads) {
  for (const auto& row : rows) {
    if (row.fits && row.way.method == method && offloads == (row.way.offload_parameters || row.way.offload_moments)) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("the users' table of decisions, by numbers: where it holds, and where it does not") {
  // Below 13 B on cards of 40 GB: DDP. Of adapters so; 7 B trained whole has 16 bytes a parameter and does not fit 80.
  CHECK(any_fits(table_of(kLlama7, "lora", "8x40GB"), Method::Ddp, false));
  CHECK_FALSE(any_fits(table_of(kLlama7, "none", "8x80GB"), Method::Ddp, false));
  CHECK(any_fits(table_of(kLlama7, "none", "8x40GB"), Method::Fsdp, false));
  // 13 B or more on 8 GPUs: FSDP. Trained whole so; adapters of 13 B need no sharding on 80 GB.
  CHECK(any_fits(table_of(kLlama13, "none", "8x80GB"), Method::Fsdp, false));
  CHECK(any_fits(table_of(kLlama13, "lora", "8x80GB"), Method::Ddp, false));
  // At most 24 GB: FSDP with CPU offload. Eight such cards hold 7 B whole with it; of adapters nothing is offloaded.
  CHECK(any_fits(table_of(kLlama7, "none", "8x24GB"), Method::Fsdp, true));
  CHECK(any_fits(table_of(kLlama7, "lora", "4x24GB"), Method::Fsdp, false));
  // 70 B on 8 cards of 80 GB: FSDP with QLoRA, and LoRA too.
  CHECK(any_fits(table_of(kLlama70, "qlora", "8x80GB"), Method::Fsdp, false));
  CHECK_FALSE(any_fits(table_of(kLlama70, "none", "8x80GB"), Method::Fsdp, false));
  // InfiniBand: DDP first. Where it fits fsdp hides its gathers there too, in a fraction of the memory.
  const auto rows = table_of(kTinyLlama, "none", "2x8x80GB");  // 400 Gbit/s between the hosts
  const auto fastest = [&](Method method) {
    return std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.way.method == method; });
  };
  const auto ddp = fastest(Method::Ddp), fsdp = fastest(Method::Fsdp);
  REQUIRE((ddp != rows.end() && fsdp != rows.end() && ddp->fits && fsdp->fits));
  CHECK(fsdp->time.seconds < 1.1 * ddp->time.seconds);
  CHECK(4 * (fsdp->memory.parameters + fsdp->memory.moments) < ddp->memory.parameters + ddp->memory.moments);
}

TEST_CASE("advice has the numbers that led to it, in both languages alike") {
  Question question{.length = 2048, .rows = 64, .tokens = 1'000'000'000};
  read_machine("4x24GB", question.machine);
  question.machine.link = 1.25e9;  // 10 GbE
  const auto rows = make_table({candidate_of(kLlama7, "none"), candidate_of(kLlama7, "lora")}, question);
  const auto english = advice(rows, question, Language::English), chinese = advice(rows, question, Language::Chinese);
  REQUIRE(english.size() == chinese.size());
  const auto numbers = [](const std::string& text) {
    std::multiset<std::string> found;
    static const std::regex number(R"(\d+(\.\d+)? ?(GB|s\b|%))");
    for (std::sregex_iterator each(text.begin(), text.end(), number), end; each != end; ++each)
      found.insert(each->str());
    return found;
  };
  for (std::size_t i = 0; i < english.size(); ++i) {
    CAPTURE(english[i]);
    CAPTURE(chinese[i]);
    CHECK_FALSE(numbers(english[i]).empty());
    CHECK_FALSE(numbers(chinese[i]).empty());
    for (const auto& each : numbers(chinese[i])) CHECK(english[i].find(each) != std::string::npos);
    MESSAGE(english[i]);
  }
  CHECK_THROWS_WITH(read_language("fr"), "--lang is 'fr'; expected en or zh");
}

TEST_CASE("what a checkpoint costs is said in whole numbers where there are thousands of them") {
  const CheckpointCost cost{.bytes = 1,
                            .seconds = 1234.5,
                            .failure_seconds = 3.6e9,
                            .interval_seconds = 1.2e6,
                            .interval_steps = 5,
                            .overhead = 0.0123,
                            .lost_gpu_hours = 45678};
  CHECK(words_of(cost, Language::English).find("takes 1234 s. With a failure every 1000000 hours save every 20000 ") !=
        std::string::npos);
  CHECK(words_of(cost, Language::English).find("1.2 % of the time") != std::string::npos);
  CHECK(words_of(cost, Language::Chinese).find("损失 45678 GPU 小时") != std::string::npos);
}
