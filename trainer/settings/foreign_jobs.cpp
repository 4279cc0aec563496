// SPDX-License-Identifier: Apache-2.0
// See foreign_jobs.hpp.
#include "trainer/settings/foreign_jobs.hpp"

#include "sealift/nearest.hpp"
#include "trainer/settings/refuse.hpp"
#include "trainer/settings/swift_table.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace sealift::trainer {
namespace {

bool has(const Texts& texts, const char* key) {
  return texts.contains(key);
}

bool is_true(const Texts& texts, const char* key) {
  const auto found = texts.find(key);
  return found != texts.end() && found->second == "true";
}

const ForeignKey* row_of(Project project, const std::string& key) {
  for (const auto& row : foreign_keys(project)) {
    if (fnmatch(row.key, key.c_str(), 0) == 0) return &row;
  }
  return nullptr;
}

/// LLaMA-Factory's templates of class ReasoningTemplate: only these add thoughts to answers.
const std::set<std::string>& thinking_templates() {
  static const std::set<std::string> names = {
      "aeva",  "deepseekr1", "ernie_vl", "gemma4",   "gemma4n",    "glm4_5v",  "glm4_7",  "glm4_moe", "glm4v",
      "glmz1", "gpt_oss",    "hy3",      "keye_vl",  "kimi_vl",    "mimo",     "mimo_v2", "mimo_vl",  "minimax2",
      "qwen3", "qwen3_5",    "qwen3_6",  "qwen3_vl", "qwen3_omni", "seed_oss", "youtu"};
  return names;
}

/// Puts a setting; several data sets follow each other.
void put(Texts& texts, const std::string& name, const std::string& text, const std::string& source) {
  const auto [other, is_new] = texts.emplace(name, text);
  if (is_new || other->second == text) return;
  if (name != "dataset" && name != "val_dataset") {
    refuse(source + ": " + name + " is " + other->second + " by one key and " + text + " by another; leave one out");
  }
  other->second += kSeparator + text;
}

/// "name=text;name=text;@verb" as settings.
void apply(const std::string& actions, const std::string& where, const std::string& source, Task task, Texts& texts) {
  std::istringstream words(actions);
  for (std::string action; std::getline(words, action, ';');) {
    if (action.starts_with('@')) {
      if (action.substr(1) != to_string(task)) refuse(where + "; use sealift-train " + action.substr(1));
      continue;
    }
    const auto equals = action.find('=');
    put(texts, action.substr(0, equals), action.substr(equals + 1), source);
  }
}

/// What a project takes by a rule and not by a value, and what it asks for.
void settle(ForeignJob& job, const Texts& given, const std::string& source, Task task, const Texts& flags) {
  auto& [project, taken, defaults] = job;
  const auto& texts = taken.texts;
  const auto left_open = [&, &taken = taken](const std::string& what) {
    taken.problems.push_back(source + ": " + what);
  };
  const bool adapters = (has(texts, "tuner_type") && texts.at("tuner_type") != "none") || has(texts, "quant_bits");
  if (project == Project::LlamaFactory) {
    const auto rank = texts.find("lora_rank");
    const auto text = rank == texts.end() ? "8" : rank->second;
    const bool number = !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
    if (number) defaults["lora_alpha"] = std::to_string(2 * std::stoll(text));
    const auto name = given.find("template");
    if (name != given.end() && thinking_templates().contains(name->second)) defaults.erase("add_non_thinking_prefix");
  }
  if (project == Project::Axolotl) {
    if (has(texts, "save_steps")) defaults.erase("save_strategy");
    const bool evaluates = has(texts, "val_dataset") || has(texts, "split_dataset_ratio");
    if (!evaluates) taken.texts.erase("eval_strategy");  // evals_per_epoch of nothing
    const auto said = [&](const Texts& texts) {
      const auto ratio = texts.find("warmup_ratio");
      return has(texts, "warmup_steps") || (ratio != texts.end() && std::atof(ratio->second.c_str()) == 0);
    };
    if (said(given) || said(flags)) defaults.erase("warmup_rule");
    if (!has(given, "learning_rate")) left_open("there is no learning_rate, which axolotl asks for");
    if (has(texts, "precision")) defaults.erase("precision");
    if (has(given, "bf16") && !is_true(given, "bf16") && given.at("bf16") != "auto") defaults["precision"] = "fp32";
    for (const char* key : {"lora_r", "lora_alpha"}) {
      if (adapters && !has(given, key)) left_open(std::string("there is no ") + key + " of the adapter");
    }
  }
  if (project == Project::Trl) {
    if (has(given, "bf16") && !is_true(given, "bf16")) defaults["precision"] = "fp32";
    if (has(texts, "precision")) defaults.erase("precision");
    const bool drops = has(given, "disable_dropout") && !is_true(given, "disable_dropout");
    if (task == Task::Dpo || task == Task::Kto || task == Task::Reward) {
      if (drops) defaults.erase("lora_dropout");
      if (!drops) taken.texts["lora_dropout"] = "0";
    }
    if (task == Task::Sft && !has(texts, "loss_scale") && !has(flags, "loss_scale")) {
      left_open(
          "TRL learns every token of chats, and of prompt and completion the completion; say loss_scale: all, or "
          "default (the assistant's words, as assistant_only_loss)");
    }
  }
  const bool open_targets = project == Project::Axolotl || project == Project::Trl;
  if (open_targets && adapters && !has(texts, "target_modules") && !has(texts, "adapters")) {
    left_open(
        "the adapter has no targets, which PEFT would take from a table of its own; say them "
        "(lora_target_modules), as q_proj and v_proj");
  }
  for (const auto& [name, text] : texts) defaults.erase(name);
}

}  // namespace

Project project_of(const Texts& texts) {
  const auto has_one = [&](std::initializer_list<const char*> keys) {
    return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return has(texts, key); });
  };
  if (has(texts, "base_model")) return Project::Axolotl;
  if (has_one({"finetuning_type", "stage", "cutoff_len"})) return Project::LlamaFactory;
  if (has_one({"swift_version", "train_type", "sft_type", "template_backend", "torch_dtype", "attn_impl", "add_version",
               "split_dataset_ratio", "load_from_cache_file", "lazy_tokenize", "agent_template"})) {
    return Project::MsSwift;
  }
  const bool of_trl = has_one({"model_name_or_path", "dataset_name", "use_peft", "assistant_only_loss",
                               "completion_only_loss", "dataset_text_field", "fp16_full_eval"});
  return of_trl ? Project::Trl : Project::Own;
}

std::string to_string(Project project) {
  switch (project) {
    case Project::MsSwift:
      return "ms-swift";
    case Project::LlamaFactory:
      return "LLaMA-Factory";
    case Project::Axolotl:
      return "axolotl";
    case Project::Trl:
      return "TRL";
    default:
      return "sealift-train";
  }
}

std::optional<Task> task_of(const Texts& texts) {
  if (const auto rlhf = texts.find("rlhf_type"); rlhf != texts.end()) {
    return rlhf->second == "kto" ? Task::Kto : rlhf->second == "rm" ? Task::Reward : Task::Dpo;
  }
  for (const auto& [key, value] : texts) {
    const auto* row = row_of(project_of(texts), key);
    for (const auto& [known, actions] : row ? row->values : std::vector<std::pair<const char*, const char*>>()) {
      const auto at = std::string(actions).find('@');
      if (value != known || at == std::string::npos) continue;
      for (const auto task : {Task::Sft, Task::Dpo, Task::Kto, Task::Reward, Task::Pretrain}) {
        if (to_string(task) == std::string(actions).substr(at + 1)) return task;
      }
    }
  }
  return {};
}

std::optional<std::string> take_over_key(Project project, const std::string& key, const std::string& value,
                                         const std::string& source, Task task, Texts& texts) {
  const auto* row = row_of(project, key);
  const auto where = source + ": " + key + " is '" + value + "'";
  if (!row) {
    put(texts, key, value, source);
    return {};
  }
  for (const auto& [known, actions] : row->values) {
    if (value != known) continue;
    apply(actions, where, source, task, texts);
    return *actions ? std::optional<std::string>() : "it is what is always done";
  }
  if (*row->setting) {
    put(texts, row->setting, value, source);
    return {};
  }
  static const std::set<std::string> off = {"false", "0", "0.0", "none", "None", "[]", "{}"};
  if (row->refused && off.contains(value)) return "it is off";
  if (row->refused || !row->values.empty()) refuse(where + ", which there is not here: " + row->remedy);
  return row->remedy;
}

ForeignJob take_over_job(const Texts& texts, const std::string& source, Task task, const Texts& flags) {
  ForeignJob job;
  job.project = project_of(texts);
  Texts ours;
  std::vector<std::string> ignored, problems;
  for (const auto& [key, value] : texts) {
    try {
      if (take_over_key(job.project, key, value, source, task, ours)) ignored.push_back(key);
    } catch (const std::invalid_argument& problem) {
      problems.emplace_back(problem.what());
    }
  }
  job.taken = take_over(ours, source);
  job.taken.ignored.insert(job.taken.ignored.end(), ignored.begin(), ignored.end());
  job.taken.problems.insert(job.taken.problems.end(), problems.begin(), problems.end());
  job.defaults = foreign_defaults(job.project, task);
  settle(job, texts, source, task, flags);
  return job;
}

std::string meant_by(const std::string& key, const std::set<std::string>& ours) {
  constexpr Project kProjects[] = {Project::LlamaFactory, Project::Axolotl, Project::Trl};
  std::map<std::string, std::string> known;  // a name -> what is said of it
  for (const auto project : kProjects) {
    for (const auto& row : foreign_keys(project)) {
      if (std::string(row.key).find_first_of("*.") != std::string::npos) continue;
      known.emplace(
          row.key, " (" + to_string(project) + "'s" + (*row.setting ? ", here " + std::string(row.setting) : "") + ")");
    }
  }
  for (const auto& only : swift_only()) known[only.key] = "";
  for (const auto& [theirs, name] : swift_aliases()) known[theirs] = " (here " + name + ")";
  for (const auto& name : ours) known[name] = "";
  if (const auto same = known.find(key); same != known.end()) return ", a key of another project" + same->second;
  std::set<std::string> names;
  for (const auto& [name, said] : known) names.insert(name);
  const auto near = nearest(key, names);
  return near.empty() ? "" : ", did you mean " + near + known[near];
}

}  // namespace sealift::trainer
