// SPDX-License-Identifier: Apache-2.0
// `sealift-train sft`, `dpo`, `kto`, `reward` and `pretrain`: settings in, ranks started, a trained model or adapter
// out. See fine_tune.hpp for the training and on_ranks.hpp for the start of ranks. One file for all, which differ in
// the data that they take. ms-swift's own command line is accepted: its flags have underscores, its lists are separated
// by spaces, and flags that mean nothing here are given to swift_names.
#include "trainer/fine_tune/fine_tune.hpp"

#include "trainer/failure.hpp"
#include "trainer/json_numbers.hpp"
#include "trainer/monitor/monitor.hpp"
#include "trainer/ranks/on_ranks.hpp"
#include "trainer/settings/not_here.hpp"
#include "trainer/verbs/verbs.hpp"

#include <algorithm>
#include <functional>

namespace sealift::trainer {
namespace {

struct FineTuneArguments {
  FineTuneSources sources;
  std::int64_t ranks = 0;
  bool json = false;
  std::vector<std::string> others;  ///< settings, which the table knows
};

/// Flags that the command line does not know, as `--name value…`, `--name=value` or `--name` alone.
void take_extras(const std::vector<std::string>& extras, Texts& flags) {
  std::string name;
  for (const auto& word : extras) {
    if (!word.starts_with("--")) {
      if (name.empty()) throw std::invalid_argument("'" + word + "' is no setting; write --name value");
      auto& text = flags[name];
      text += (text.empty() ? "" : std::string(1, kSeparator)) + word;
      continue;
    }
    if (!name.empty() && flags[name].empty()) flags[name] = "true";
    const auto equals = word.find('=');
    name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '-', '_');
    if (flags.contains(name)) throw std::invalid_argument("--" + name + " is given twice");
    flags[name] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  if (!name.empty() && flags[name].empty()) flags[name] = "true";
}

void print_training(const nlohmann::ordered_json& result, bool json) {
  if (json) {
    std::cout << with_all_numbers(result).dump(1) << '\n';
    return;
  }
  std::cout << result["parallel_method"].get<std::string>() << " x" << result["world_size"] << ", "
            << result["tuner_type"].get<std::string>() << ": loss " << result["final_loss"].get<double>() << " after "
            << result["steps"] << " steps; " << result["saved"].get<std::string>() << "; "
            << cost_line(result["monitor"]) << '\n';
}

/// The task of a verb, when its words are known.
using TaskOf = std::function<Task(const FineTuneSources&)>;

void add(bundle::Program& program, char** argv, const TaskOf& task_of, const char* name, const char* what) {
  const auto arguments = std::make_shared<FineTuneArguments>();
  const auto verb = program.verb(name, what);
  auto& [sources, ranks, json, others] = *arguments;
  verb.option("--config", sources.config_file, "settings: TOML, or a job of ms-swift, LLaMA-Factory, axolotl or TRL");
  verb.option("--preset", sources.preset, "settings by name: fsdp_lora, fsdp_qlora, ddp_full, hsdp_full; or a file");
  add_ranks(verb, ranks);
  verb.flag("--json", json, "print result.json");
  verb.footer([] {
    std::string text = "Settings, each [as a variable], also by ms-swift's other names; lists are a,b or a b:\n";
    for (const auto& setting : fine_tune_settings()) {
      text += "  " + setting.flag() + "  " + setting.help + " [" + setting.variable() + "]\n";
    }
    return text;
  });
  verb.others(others);
  verb.action([arguments, argv, task_of] {
    take_extras(arguments->others, arguments->sources.flags);
    const auto options = read_fine_tune_options(task_of(arguments->sources), arguments->sources);
    refuse_what_is_not_here(options);
    if (options.dry_run) {
      const auto launch = train::parse_launch();
      const auto world_size = std::max(arguments->ranks, launch.world_size);
      std::cout << describe(options, world_size).dump(1) << '\n';
      return 0;
    }
    const auto end = on_ranks([&](const auto& launch, auto& world) { return fine_tune(options, launch, world); },
                              arguments->ranks, argv);
    if (end.result) print_training(*end.result, arguments->json);
    return end.code;
  });
}

}  // namespace

void add_fine_tune(bundle::Program& program, char** argv) {
  const auto always = [](Task task) { return [task](const FineTuneSources&) { return task; }; };
  add(program, argv, always(Task::Sft), "sft", "fine-tune a model on prompts and answers");
  add(program, argv, always(Task::Dpo), "dpo", "fine-tune a model on preferences: DPO and its relatives");
  add(program, argv, always(Task::Kto), "kto", "fine-tune a model on answers that are good or bad");
  add(program, argv, always(Task::Reward), "reward", "train a model to score answers by preferences");
  add(program, argv, always(Task::Pretrain), "pretrain", "train a model on text");
  add(program, argv, task_of_rlhf, "rlhf", "ms-swift's word: dpo, kto or reward, as rlhf_type says");
}

}  // namespace sealift::trainer
