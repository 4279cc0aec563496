// SPDX-License-Identifier: Apache-2.0
// `sealift-train explain JOB`: what becomes of each key of a job file of ms-swift, LLaMA-Factory, axolotl or TRL.
// See settings/foreign_jobs.hpp, which decides. Nothing is trained or opened but the file.
// Keys are told one by one, so that all that is refused is seen at once; then whether the whole job can be.
#include "trainer/failure.hpp"
#include "trainer/plan/advice.hpp"
#include "trainer/settings/fates.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/misspelt_variables.hpp"
#include "trainer/settings/not_here.hpp"
#include "trainer/settings/options.hpp"
#include "trainer/settings/settings_file.hpp"
#include "trainer/verbs/verbs.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

namespace sealift::trainer {
namespace {

struct ExplainArguments {
  std::string job, verb, lang = "en";
  bool json = false;
};

struct Words {
  const char *a_job_of, *taken, *ignored, *refused, *defaults, *rules, *whole, *can_be, *cannot_be, *verb_open;
};

constexpr Words kEnglish = {"a job of",
                            "taken",
                            "ignored",
                            "refused",
                            "what it does not say, as the project takes it",
                            "what holds",
                            "the whole job",
                            "can be trained by sealift-train",
                            "cannot be: ",
                            "it does not say what it trains towards, and is read as sft; --verb dpo, kto, reward or "
                            "pretrain reads it as that"};
constexpr Words kChinese = {"任务文件来自",
                            "采用",
                            "忽略",
                            "拒绝",
                            "未写出的设置，按该项目的默认值",
                            "适用的规则",
                            "整个任务",
                            "可以训练：sealift-train",
                            "不能训练：",
                            "任务文件没有说明训练目标，按 sft 解读；--verb dpo、kto、reward 或 pretrain 可改为其他"};

using Rules = std::vector<std::pair<const char*, const char*>>;

Task verb_of(const ExplainArguments& arguments, const Texts& texts) {
  if (arguments.verb.empty()) return task_of(texts).value_or(Task::Sft);
  for (const auto task : {Task::Dpo, Task::Kto, Task::Reward, Task::Pretrain}) {
    if (to_string(task) == arguments.verb) return task;
  }
  return Task::Sft;
}

/// Why the whole job cannot be; empty where it can.
std::string fault_of(const std::string& job, const std::string& verb, Task task) {
  try {
    refuse_misspelt_variables();
    if (verb == "run") {
      read_options({}, job);
      return {};
    }
    refuse_what_is_not_here(read_fine_tune_options(task, {.flags = {}, .config_file = job, .preset = {}}));
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

Texts defaults_of(const Texts& texts, const std::string& job, Task task) {
  try {
    return take_over_job(texts, job, task, {{"loss_scale", "default"}}).defaults;
  } catch (const std::invalid_argument&) {
    return foreign_defaults(project_of(texts), task);
  }
}

int print_explanation(const ExplainArguments& arguments) {
  const bool chinese = plan::read_language(arguments.lang) == plan::Language::Chinese;
  const auto& words = chinese ? kChinese : kEnglish;
  const auto texts = read_config(arguments.job);
  const auto task = verb_of(arguments, texts);
  const bool of_run = arguments.verb == "run";
  const auto project = of_run ? Project::Own : project_of(texts);
  const auto verb = of_run ? "run" : to_string(task);
  // Of LLaMA-Factory and axolotl a job that does not say it is sft; TRL and ms-swift have a program for each.
  const bool by_program = project == Project::Trl || project == Project::MsSwift;
  const bool is_open = arguments.verb.empty() && by_program && !task_of(texts);
  const auto fates = of_run ? fates_of_run(texts) : fates_of(texts, task);
  const auto fault = fault_of(arguments.job, arguments.verb, task);
  const auto defaults = of_run ? Texts() : defaults_of(texts, arguments.job, task);
  const auto name_of = [&](Fate::Kind kind, const Words& in) {
    return kind == Fate::Kind::Taken ? in.taken : kind == Fate::Kind::Ignored ? in.ignored : in.refused;
  };
  if (arguments.json) {
    nlohmann::ordered_json json = {
        {"project", to_string(project)}, {"verb", verb}, {"verb_is_said", !is_open}, {"fault", fault}};
    for (const auto& fate : fates) {
      json["keys"][fate.key] = {{"value", fate.value}, {"fate", name_of(fate.kind, kEnglish)}, {"words", fate.words}};
    }
    json["defaults"] = defaults;
    std::cout << json.dump(1) << '\n';
    return fault.empty() ? 0 : kBad;
  }
  std::cout << words.a_job_of << ' ' << to_string(project) << '\n';
  if (is_open) std::cout << words.verb_open << '\n';
  for (const auto kind : {Fate::Kind::Refused, Fate::Kind::Taken, Fate::Kind::Ignored}) {
    for (const auto& fate : fates) {
      if (fate.kind != kind) continue;
      std::cout << "  " << name_of(kind, words) << "  " << fate.key << " = " << fate.value << "  ->  " << fate.words
                << '\n';
    }
  }
  if (!defaults.empty()) std::cout << words.defaults << ":\n";
  for (const auto& [name, text] : defaults) std::cout << "  " << name << " = " << text << '\n';
  if (!of_run) std::cout << words.rules << ":\n";
  for (const auto& [english, in_chinese] : of_run ? Rules() : foreign_rules(project)) {
    std::cout << "  " << (chinese ? in_chinese : english) << '\n';
  }
  const auto verdict = fault.empty() ? words.can_be + (" " + verb) : words.cannot_be + fault;
  std::cout << words.whole << ": " << verdict << '\n';
  return fault.empty() ? 0 : kBad;
}

}  // namespace

void add_explain(bundle::Program& program) {
  const auto arguments = std::make_shared<ExplainArguments>();
  const auto verb =
      program.verb("explain", "what becomes of each key of a job of ms-swift, LLaMA-Factory, axolotl, TRL");
  verb.option("JOB", arguments->job, "the job file: YAML, JSON or TOML").required();
  verb.option("--verb", arguments->verb, "read it as a job of this verb [the job's own, or sft]")
      .one_of({"sft", "dpo", "kto", "reward", "pretrain", "run"});
  verb.option("--lang", arguments->lang, "en, zh").one_of({"en", "zh"});
  verb.flag("--json", arguments->json, "print as JSON");
  verb.action([arguments] { return print_explanation(*arguments); });
}

}  // namespace sealift::trainer
