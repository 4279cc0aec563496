// SPDX-License-Identifier: Apache-2.0
// `sealift-train plan`: a model folder and a machine in; what each way to train takes, sends and lasts out.
// See plan/table.hpp for what is computed. Needs no GPU and no weights: config.json is enough.
// Rates that are not given are assumed, and said to be.
#include "trainer/data/token_file.hpp"
#include "trainer/json_numbers.hpp"
#include "trainer/plan/advice.hpp"
#include "trainer/plan/candidates.hpp"
#include "trainer/plan/checkpoint_cost.hpp"
#include "trainer/plan/report.hpp"
#include "trainer/simulate/drawing.hpp"
#include "trainer/verbs/verbs.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>

namespace sealift::trainer {
namespace {

struct PlanArguments {
  std::string model, data, machine = "1x8x80GB", link, card_link, bus, flops, host_memory, memory_rate, latency, disk;
  std::vector<std::string> tuners{"none", "lora", "qlora"}, precisions{"bf16"};
  std::string device = "cuda", job, timeline, lang = "en";
  double tokens = 0, epochs = 3, node_hours = 4000;
  std::int64_t length = 2048, batch = 16, lora_rank = 8;
  double lora_dropout = 0.05;
  std::size_t top = 12;
  bool no_offload = false, json = false;
};

plan::Machine machine_of(const PlanArguments& arguments) {
  plan::Machine machine;
  plan::read_machine(arguments.machine, machine);
  const auto set = [](const char* name, const std::string& text, auto& field, const auto& read) {
    if (!text.empty()) field = read(name, text);
  };
  set("--card-link", arguments.card_link, machine.link, plan::read_rate);
  set("--link", arguments.link, machine.hosts > 1 ? machine.network : machine.link, plan::read_rate);
  set("--bus", arguments.bus, machine.bus, plan::read_rate);
  set("--flops", arguments.flops, machine.flops, plan::read_flops);
  set("--host-memory", arguments.host_memory, machine.host_memory, plan::read_bytes);
  set("--memory-rate", arguments.memory_rate, machine.memory_rate, plan::read_rate);
  set("--latency", arguments.latency, machine.latency, plan::read_seconds);
  set("--disk", arguments.disk, machine.disk, plan::read_rate);
  return machine;
}

/// Tokens of all epochs: of the file, or as given.
std::int64_t tokens_of(const PlanArguments& arguments) {
  const auto once =
      arguments.data.empty() ? arguments.tokens : static_cast<double>(TokenFile::open(arguments.data)->header().tokens);
  if (!(once >= 0) || once > 1e18) throw std::invalid_argument("--tokens is no number from 0 to 1e18");
  return static_cast<std::int64_t>(once * arguments.epochs);
}

std::vector<plan::Candidate> candidates_of(const PlanArguments& arguments) {
  const auto config = read_decoder_config(arguments.model);
  const LoraOptions lora{.rank = arguments.lora_rank, .dropout = arguments.lora_dropout};
  std::vector<plan::Candidate> candidates;
  for (const auto& tuner : arguments.tuners) {
    for (const auto& precision : arguments.precisions) {
      candidates.push_back(plan::candidate_of(config, tuner, precision == "bf16" ? 2 : 4, lora));
    }
  }
  return candidates;
}

std::string assumed(const PlanArguments& arguments, const plan::Machine& machine) {
  std::string text;
  const auto say = [&](const std::string& given, const std::string& what) {
    if (given.empty()) text += (text.empty() ? "assumed: " : ", ") + what;
  };
  const auto rate = [](double bytes) { return plan::gigabytes(static_cast<std::int64_t>(bytes)) + "/s"; };
  say(arguments.flops, std::to_string(static_cast<int>(machine.flops / 1e12)) + " TFLOPS a card in 16 bits");
  if (machine.hosts > 1) say(arguments.link, rate(machine.network) + " between hosts");
  if (machine.hosts > 1) say(arguments.card_link, rate(machine.link) + " between cards");
  if (machine.hosts == 1) say(arguments.link + arguments.card_link, rate(machine.link) + " between cards");
  say(arguments.bus, rate(machine.bus) + " to host memory");
  say(arguments.memory_rate, rate(machine.memory_rate) + " of a card's own memory");
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text << std::flush)) throw std::invalid_argument("cannot write " + path);
}

/// The row's step as a drawing.
std::string timeline_of(const plan::Row& row, const std::vector<plan::Candidate>& candidates,
                        const plan::Machine& machine) {
  const auto candidate = std::find_if(candidates.begin(), candidates.end(), [&](const auto& one) {
    return one.tuner == row.tuner && one.compute_bytes == row.way.batch.compute_bytes;
  });
  TORCH_CHECK(candidate != candidates.end(), "a row of no candidate");
  return timeline_svg(plan::step_shape(candidate->shape, row.way), plan::rates_of(row.way, machine),
                      plan::words_of(row));
}

int print_plan(const PlanArguments& arguments) {
  const auto machine = machine_of(arguments);
  const auto candidates = candidates_of(arguments);
  const plan::Question question{.machine = machine,
                                .kernels = arguments.device == "cpu" ? plan::Kernels::Host : plan::Kernels::Cuda,
                                .length = arguments.length,
                                .rows = arguments.batch,
                                .tokens = tokens_of(arguments),
                                .offloads = !arguments.no_offload};
  const auto rows = plan::make_table(candidates, question);
  const auto advice = plan::advice(rows, question, plan::read_language(arguments.lang));
  const bool any = !rows.empty() && rows.front().fits;
  const auto checkpoint =
      any ? std::optional(plan::checkpoint_cost(rows.front(), candidates, machine, arguments.node_hours))
          : std::nullopt;
  const auto job = any ? plan::job_file(rows.front(), arguments.model, arguments.data) : std::string();
  if (any && !arguments.job.empty()) write_file(arguments.job, job);
  if (any && !arguments.timeline.empty()) {
    write_file(arguments.timeline, timeline_of(rows.front(), candidates, machine));
  }
  if (arguments.json) {
    nlohmann::ordered_json json{{"model", arguments.model},
                                {"machine", to_json(machine)},
                                {"parameters", candidates.front().shape.parameters()},
                                {"advice", advice},
                                {"rows", nlohmann::json::array()}};
    if (checkpoint) json["checkpoint"] = plan::to_json(*checkpoint);
    if (any) json["job"] = job;
    for (const auto& row : rows) json["rows"].push_back(to_json(row));
    std::cout << with_all_numbers(json).dump(1) << '\n';
  } else {
    std::cout << plan::table_text(rows, arguments.top) << '\n';
    for (const auto& line : advice) std::cout << line << '\n';
    if (checkpoint) std::cout << plan::words_of(*checkpoint, plan::read_language(arguments.lang)) << '\n';
    if (any) std::cout << '\n' << job;
    if (const auto text = assumed(arguments, machine); !text.empty()) std::cerr << text << '\n';
  }
  return any ? 0 : kBad;
}

}  // namespace

void add_plan(bundle::Program& program) {
  const auto arguments = std::make_shared<PlanArguments>();
  auto& a = *arguments;
  const auto verb = program.verb("plan", "foretell what each way to train a model takes on a machine");
  verb.option("--model", a.model, "a folder with config.json").required();
  const auto data = verb.option("--data", a.data, "a token file: adds the time to train on its tokens");
  verb.option("--tokens", a.tokens, "number of tokens, in place of --data").excludes(data);
  verb.option("--epochs", a.epochs, "passes over these tokens [3]").positive();
  verb.option("--machine", a.machine, "HOSTSxCARDSxMEMORY [1x8x80GB]");
  verb.option("--link", a.link, "rate between hosts, as 400Gbit; on one host between cards");
  verb.option("--card-link", a.card_link, "rate between cards of a host [50GB/s]");
  verb.option("--bus", a.bus, "rate between a card and host memory [20GB/s]");
  verb.option("--flops", a.flops, "what a card achieves in 16 bits [125T]");
  verb.option("--memory-rate", a.memory_rate, "of a card's own memory [1.2TB/s]");
  verb.option("--latency", a.latency, "of a collective of any size [20us]");
  verb.option("--host-memory", a.host_memory, "memory of a host for offloaded tensors [not bounded]");
  verb.option("--disk", a.disk, "rate at which a host writes checkpoints [2GB/s]");
  verb.option("--node-mtbf", a.node_hours, "hours between failures of one host [4000]").positive();
  verb.option("--tuner", a.tuners, "none, lora, qlora; several: compared [all]")
      .listed()
      .one_of({"none", "lora", "qlora"});
  verb.option("--precision", a.precisions, "bf16, fp32; several: compared [bf16]").listed().one_of({"bf16", "fp32"});
  verb.option("--length", a.length, "tokens of a row [2048]").between(2, 1 << 24);
  verb.option("--batch", a.batch, "rows of a step, over all ranks [16]").between(1, 1 << 20);
  verb.option("--lora-rank", a.lora_rank, "of lora and qlora [8]").between(1, 1 << 14);
  verb.option("--lora-dropout", a.lora_dropout, "of lora and qlora [0.05]").between(0.0, 0.99);
  verb.option("--device", a.device, "whose kernels: cuda or cpu [cuda]").one_of({"cuda", "cpu"});
  verb.flag("--no-offload", a.no_offload, "leave offloading out");
  verb.option("--top", a.top, "rows to print [12]");
  verb.option("--job", a.job, "file to write the fastest way to, for sft --config");
  verb.option("--timeline", a.timeline, "SVG file to draw a step of the fastest way in");
  verb.option("--lang", a.lang, "of the advice: en, zh").one_of({"en", "zh"});
  verb.flag("--json", a.json, "print all rows as JSON");
  verb.action([arguments] { return print_plan(*arguments); });
}

}  // namespace sealift::trainer
