// SPDX-License-Identifier: Apache-2.0
// The table of fine-tuning's settings, the layers that they come from, and what a job cannot be.
// See fine_tune_options.hpp; swift_names.hpp translates keys, settings.cpp reads texts.
// Every layer is translated by itself, so that a message names the place where a key was written.
#include "trainer/settings/fine_tune_options.hpp"

#include "trainer/settings/foreign_jobs.hpp"
#include "trainer/settings/presets.hpp"
#include "trainer/settings/refuse.hpp"
#include "trainer/settings/schedule.hpp"
#include "trainer/settings/settings_file.hpp"
#include "trainer/settings/swift_names.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

namespace sealift::trainer {
namespace {

using Rows = std::vector<SettingOf<FineTuneOptions>>;
using O = FineTuneOptions;
using enum Changes;

Rows what_is_trained() {
  return {
      {Numbers, "model", "folder with config.json, safetensors and the tokenizer", &O::model},
      {Numbers, "dataset", "also --data: a token file, or JSON lines that become one", &O::dataset},
      {Numbers, "val_dataset", "the same for evaluation", &O::val_dataset},
      {Numbers, "packing", "true: several examples share a row of max_length tokens, and do not see each other",
       &O::packing},
      {Numbers, "max_length", "tokens of a row; 0: of the longest example, with packing at least 2048", &O::max_length},
      {Numbers, "truncation_strategy",
       "what to do with JSON lines beyond max_length: raise, delete, left, right, pairs or split",
       &O::truncation_strategy},
      {Numbers, "loss_scale", "what is learned of JSON lines: default (all answers), last_round or all",
       &O::loss_scale},
      {Numbers, "skip_bad_lines", "true: leave out JSON lines that cannot be used, and count them", &O::skip_bad_lines},
      {Numbers, "data_format", "whose rules weight, train, loss ... of JSON lines follow: any, ms-swift, axolotl ...",
       &O::data_format},
      {Numbers, "training_key", "a message's key in JSON lines: true or false says whether the message is learned",
       &O::training_key},
      {Way, "dataset_dir", "a folder with LLaMA-Factory's dataset_info.json; dataset has names from it",
       &O::dataset_dir},
      {Numbers, "max_samples", "rows to take from the beginning of each file of JSON lines; 0: all", &O::max_samples},
      {Numbers, "split_dataset_ratio",
       "share of JSON lines that becomes val_dataset, above 1 their number; drawn by data_seed",
       &O::split_dataset_ratio},
      {Numbers, "alpaca_prompts", "true: JSON lines with an instruction get Alpaca's prompt, and no chat template",
       &O::alpaca_prompts},
      {Numbers, "add_non_thinking_prefix",
       "false: in data of ms-swift, LLaMA-Factory and TRL too, only the template writes empty thoughts",
       &O::add_non_thinking_prefix},
      {Numbers, "literal_markers", "true: <image>, <video>, <audio> in JSON lines are words like others",
       &O::literal_markers},
      {Numbers, "system", "a system prompt for JSON lines without one", &O::system},
      {Numbers, "use_chat_template", "false: JSON lines are joined as they are", &O::use_chat_template},
      {Numbers, "seed", "of adapters' first values and of dropout", &O::seed},
      {Numbers, "data_seed", "of the order of examples", &O::data_seed},
      {Numbers, "train_dataloader_shuffle", "false: examples in the order of the file", &O::train_dataloader_shuffle},
      {Numbers, "precision", "fp32, bf16 or fp16: what is computed in; trained values are kept in fp32", &O::precision},

      {Numbers, "tuner_type", "also --tuner: lora, qlora (over a base of 4 bits), or none: the whole model",
       &O::tuner_type},
      {Numbers, "lora_rank", "", &O::lora_rank},
      {Numbers, "lora_alpha", "an adapter's output is multiplied by alpha / rank", &O::lora_alpha},
      {Numbers, "lora_dropout", "of an adapter's input", &O::lora_dropout},
      {Numbers, "adapters", "a folder of PEFT's to go on from; it says rank, alpha, dropout and targets", &O::adapters},
      {Numbers, "target_modules", "names of the projections that get an adapter; all-linear: each but the head",
       &O::target_modules},
      {Numbers, "target_regex", "instead: an expression that a projection's whole path must match", &O::target_regex},
      {Numbers, "modules_to_save", "trained whole beside the adapters: embed_tokens, lm_head, norm ...",
       &O::modules_to_save},
      {Numbers, "use_rslora", "alpha / sqrt(rank) instead", &O::use_rslora},
      {Numbers, "use_dora", "adapters of the direction, beside a trained magnitude", &O::use_dora},
      {Numbers, "lorap_lr_ratio", "LoRA+: B's learning rate as a multiple of A's", &O::lorap_lr_ratio},
      {Way, "merge_lora", "true: also write the model with the adapter in it", &O::merge_lora},
  };
}

Rows how_it_is_trained() {
  return {
      {Numbers, "per_device_train_batch_size", "rows of a micro-batch on one rank", &O::per_device_train_batch_size},
      {Numbers, "gradient_accumulation_steps", "micro-batches of a step; unset: for a batch of at least 16",
       &O::gradient_accumulation_steps},
      {Numbers, "num_train_epochs", "times over the data; may be a part", &O::num_train_epochs},
      {Numbers, "max_steps", "above 0: steps, instead of epochs", &O::max_steps},
      {Numbers, "learning_rate", "the peak; unset: 1e-4 for adapters, 1e-5 for the whole model", &O::learning_rate},
      {Numbers, "lr_scheduler_type", "cosine, linear, constant, constant_with_warmup, cosine_with_min_lr, wsd ...",
       &O::lr_scheduler_type},
      {Numbers, "lr_scheduler_kwargs", "JSON, as {\"min_lr\": 1e-6}", &O::lr_scheduler_kwargs},
      {Numbers, "warmup_steps", "", &O::warmup_steps},
      {Numbers, "warmup_ratio", "part of the steps, where warmup_steps is 0", &O::warmup_ratio},
      {Numbers, "warmup_rule", "how warmup_ratio becomes steps: up; axolotl: down, unset 3 % of them and at most 100",
       &O::warmup_rule},
      {Numbers, "weight_decay", "of AdamW; norms and biases have none", &O::weight_decay},
      {Numbers, "adam_beta1", "", &O::adam_beta1},
      {Numbers, "adam_beta2", "", &O::adam_beta2},
      {Numbers, "adam_epsilon", "", &O::adam_epsilon},
      {Numbers, "max_grad_norm", "gradients are clipped to it; 0: not", &O::max_grad_norm},
      {Numbers, "router_aux_loss_coef", "weight of a router's balancing loss", &O::router_aux_loss_coef},
      {Way, "expert_model_parallel_size", "ranks over which a layer's experts are spread; 1: each has all",
       &O::expert_model_parallel_size},
      {Way, "gradient_checkpointing", "true: keep only each layer's input, run the layer again in backward",
       &O::gradient_checkpointing},
      {Way, "own_kernels", "true: on a GPU some pieces run by kernels of the trainer's own", &O::own_kernels},
  };
}

Rows what_is_saved() {
  return {
      {Way, "output_dir", "also --out: folder for results, logs and checkpoints", &O::out},
      {Way, "logging_steps", "steps between lines of log.jsonl", &O::logging_steps},
      {Way, "eval_strategy", "no, steps or epoch; unset: steps where there is val_dataset", &O::eval_strategy},
      {Way, "eval_steps", "0: save_steps", &O::eval_steps},
      {Way, "per_device_eval_batch_size", "rows of a rank", &O::per_device_eval_batch_size},
      {Way, "save_strategy", "no, steps or epoch", &O::save_strategy},
      {Way, "save_steps", "steps between checkpoints", &O::save_steps},
      {Way, "save_total_limit", "checkpoints that are kept, the best one besides; 0: all", &O::save_total_limit},
      {Numbers, "early_stop_interval", "stop after so many evaluations without a lower loss; 0: never",
       &O::early_stop_interval},
      {Way, "sample_prompts", "prompts of val_dataset, else of dataset, to answer at each evaluation or checkpoint",
       &O::sample_prompts},
      {Way, "sample_tokens", "most tokens of such an answer", &O::sample_tokens},
      {Numbers, "load_best_model_at_end", "true: the result is the checkpoint of the least evaluation loss",
       &O::load_best_model_at_end},
      {Way, "resume_from_checkpoint", "auto: from the last in output_dir if there is one; none: refuse to; or a folder",
       &O::resume_from_checkpoint},
      {Numbers, "on_nonfinite",
       "a loss or gradient of NaN or infinity: stop; skip: leave the step out; rollback: to the last checkpoint",
       &O::on_nonfinite},
      {Way, "dry_run", "true: print what would be done, and do nothing", &O::dry_run},
  };
}

Rows preferences() {
  return {
      {Numbers, "rlhf_type", "dpo: dpo, simpo, cpo or orpo", &O::rlhf_type},
      {Numbers, "loss_type", "dpo: sigmoid, ipo, hinge or robust; kto: kto or apo_zero_unpaired", &O::loss_type},
      {Numbers, "ref_model", "dpo, kto: folder of the reference; unset: the model itself as it begins", &O::ref_model},
      {Numbers, "ref_adapters", "dpo, kto: the same as adapters: they are the reference's too", &O::ref_adapters},
      {Numbers, "beta", "dpo, kto: strength of the preference; unset: the method's own", &O::beta},
      {Numbers, "label_smoothing", "dpo: part of the pairs that are taken to be wrong", &O::label_smoothing},
      {Numbers, "rpo_alpha", "dpo: weight of the chosen answers' own loss", &O::rpo_alpha},
      {Numbers, "simpo_gamma", "simpo: margin between the rewards", &O::simpo_gamma},
      {Numbers, "cpo_alpha", "cpo, simpo: weight of the chosen answers' own loss", &O::cpo_alpha},
      {Numbers, "desirable_weight", "kto: of good answers", &O::desirable_weight},
      {Numbers, "undesirable_weight", "kto: of bad answers", &O::undesirable_weight},
      {Numbers, "center_rewards_coefficient", "reward: weight of the squared sum of a pair's scores",
       &O::center_rewards_coefficient},
  };
}

using Problems = std::vector<std::string>;

Layer layer_of(const std::string& file, FineTuneOptions& options, Problems& problems) {
  auto taken = take_over(read_config(file), file);
  options.ignored.insert(options.ignored.end(), taken.ignored.begin(), taken.ignored.end());
  problems.insert(problems.end(), taken.problems.begin(), taken.problems.end());
  return {file, std::move(taken.texts)};
}

/// Keys of `layer` that name no setting, each with its nearest known name, of ours or of another project's.
void find_unknown(const Layer& layer, const std::string& verb, Problems& problems) {
  std::set<std::string> names;
  for (const auto& setting : fine_tune_settings()) names.insert(setting.name);
  for (const auto& [name, text] : layer.texts) {
    if (names.contains(name)) continue;
    problems.push_back(layer.source + ": unknown key '" + name + "'" + meant_by(name, names) + "; sealift-train " +
                       verb + " --help lists the settings");
  }
}

/// One message of all that is wrong, so that a job is not mended key by key.
void refuse_all(const Problems& problems) {
  if (problems.empty()) return;
  if (problems.size() == 1) refuse(problems.front());
  std::string text = std::to_string(problems.size()) + " keys of this job cannot be taken:";
  for (const auto& problem : problems) text += "\n  " + problem;
  refuse(text);
}

void expect_one_of(const std::string& name, const std::string& value, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  std::string list;
  for (const auto& each : known) list += (list.empty() ? "" : ", ") + each;
  refuse(name + " is '" + value + "'; use one of " + list);
}

/// What a run writes replaces what an earlier one wrote; the model that is read must not be part of it.
void check_output(const FineTuneOptions& options) {
  std::error_code ignored;  // what is not there yet is overwritten by nothing
  const auto model = std::filesystem::weakly_canonical(options.model, ignored);
  const auto out = std::filesystem::weakly_canonical(options.out, ignored);
  for (const char* name : {"model", "adapter", "merged", "tokens"}) {
    for (auto folder = model; folder.has_relative_path(); folder = folder.parent_path()) {
      if (folder == out / name)
        refuse("the model " + options.model + " lies in " + folder.string() +
               ", which this job writes anew; choose another output_dir");
    }
  }
}

/// Each verb has its own methods; ms-swift's `rlhf --rlhf_type` says the verb.
void check_preferences(const FineTuneOptions& options) {
  if (options.rlhf_type == "kto" && options.task != Task::Kto) refuse("rlhf_type is kto; use sealift-train kto");
  if (options.rlhf_type == "rm" && options.task != Task::Reward) refuse("rlhf_type is rm; use sealift-train reward");
  if (options.task == Task::Dpo) expect_one_of("rlhf_type", options.rlhf_type, {"dpo", "simpo", "cpo", "orpo"});
  if (options.task == Task::Kto) {
    expect_one_of("rlhf_type", options.rlhf_type, {"kto"});
    expect_one_of("loss_type", options.loss_type, {"", "kto", "apo_zero_unpaired"});
  }
  if (options.task == Task::Reward) expect_one_of("rlhf_type", options.rlhf_type, {"rm"});
  const bool has_labels = options.task == Task::Sft || options.task == Task::Pretrain;
  if (has_labels && !options.loss_type.empty() && options.loss_type != "cross_entropy") {
    refuse("loss_type is '" + options.loss_type + "' with sealift-train " + to_string(options.task) +
           ", whose loss is the mean of minus the log-probabilities; leave it out");
  }
  const bool has_reference = options.task == Task::Dpo || options.task == Task::Kto;
  if (!has_reference && !(options.ref_model.empty() && options.ref_adapters.empty())) {
    refuse("ref_model and ref_adapters with sealift-train " + to_string(options.task) + ", which has no reference");
  }
  if (!options.ref_adapters.empty() && (options.ref_adapters != options.adapters || !options.ref_model.empty())) {
    refuse("ref_adapters must be the folder of adapters, without ref_model; for another reference merge its adapter " +
           std::string("by a run with merge_lora = true and give that folder as ref_model"));
  }
  if (options.task == Task::Reward && options.sample_prompts > 0) {
    refuse("sample_prompts with sealift-train reward: a reward model writes no text");
  }
}

void check_adapters(const FineTuneOptions& options) {
  if (options.has_adapters()) {
    if (options.adapters.size() > 1) refuse("adapters names several folders; give one, or merge the others first");
    return;
  }
  for (const auto& [name, given] : {std::pair{"merge_lora", options.merge_lora},
                                    {"adapters", !options.adapters.empty()},
                                    {"target_regex", !options.target_regex.empty()},
                                    {"modules_to_save", !options.modules_to_save.empty()}}) {
    if (given) refuse(std::string(name) + " with tuner_type none: there is no adapter");
  }
}

void check(const FineTuneOptions& options) {
  if (options.model.empty()) refuse("there is no model; give its folder with --model");
  if (options.dataset.empty()) refuse("there are no data; give a token file, or JSON lines, with --data");
  for (auto [name, value] : {std::pair{"lora_rank", options.lora_rank},
                             {"per_device_train_batch_size", options.per_device_train_batch_size},
                             {"per_device_eval_batch_size", options.per_device_eval_batch_size},
                             {"gradient_accumulation_steps", options.gradient_accumulation_steps.value_or(1)},
                             {"logging_steps", options.logging_steps},
                             {"expert_model_parallel_size", options.expert_model_parallel_size},
                             {"sample_tokens", options.sample_tokens},
                             {"save_steps", options.save_steps}}) {
    if (value < 1) refuse(std::string(name) + " is " + std::to_string(value) + "; expected at least 1");
  }
  expect_one_of("tuner_type", options.tuner_type, {"none", "lora", "qlora"});
  expect_one_of("precision", options.precision, {"fp32", "bf16", "fp16"});
  expect_one_of("truncation_strategy", options.truncation_strategy,
                {"", "raise", "delete", "left", "right", "pairs", "split"});
  if (options.system.ends_with(".txt")) refuse("system is " + options.system + "; write the text itself");
  expect_one_of("loss_scale", options.loss_scale, {"", "default", "last_round", "all"});
  expect_one_of("data_format", options.data_format,
                {"any", "ms-swift", "llama-factory", "axolotl", "trl", "mistral-finetune"});
  expect_one_of("warmup_rule", options.warmup_rule, {"up", "axolotl"});
  expect_one_of("save_strategy", options.save_strategy, {"no", "steps", "epoch"});
  expect_one_of("on_nonfinite", options.on_nonfinite, {"stop", "skip", "rollback"});
  if (options.on_nonfinite == "rollback" && options.save_strategy == "no") {
    refuse("on_nonfinite is rollback, but save_strategy is no: there is never a checkpoint to go back to");
  }
  expect_one_of("eval_strategy", options.eval_strategy, {"no", "steps", "epoch"});
  if (options.parallel_method == "auto" && !(options.sharding_strategy.empty() && options.shard_size == 0)) {
    refuse("parallel_method auto with sharding_strategy or shard_size, which choose a method; leave one out");
  }
  check_preferences(options);
  check_adapters(options);
  if (!(options.lora_dropout < 1)) refuse("lora_dropout is 1 or more; expected a part, 0 to 1");
  if (!(options.num_train_epochs > 0) && options.max_steps == 0) refuse("num_train_epochs is 0, and max_steps too");
  const bool evaluates = options.eval_strategy != "no";
  if (evaluates && options.val_dataset.empty())
    refuse("eval_strategy is " + options.eval_strategy + "; give val_dataset");
  if (!evaluates && (options.load_best_model_at_end || options.early_stop_interval > 0)) {
    refuse("load_best_model_at_end and early_stop_interval need evaluations; give val_dataset");
  }
  Schedule({.type = options.lr_scheduler_type,
            .parameters = options.lr_scheduler_kwargs,
            .learning_rate = options.peak_rate(),
            .steps = 1,
            .warmup_steps = options.warmup_steps,
            .warmup_ratio = options.warmup_ratio,
            .warmup_rule = options.warmup_rule});
  check_output(options);
  check_job_options(options, options);
}

/// ms-swift's split_dataset_ratio: evaluation data are rows of the dataset's own.
void settle_split(FineTuneOptions& options) {
  const auto part = options.split_dataset_ratio;
  if (part == 0) return;
  if (!(part > 0) || part == 1 || (part > 1 && part != std::floor(part))) {
    refuse("split_dataset_ratio is " + nlohmann::json(part).dump() +
           "; expected a part of the rows, below 1, or a whole number of rows above 1");
  }
  if (!options.val_dataset.empty())
    refuse("val_dataset and split_dataset_ratio both give evaluation data; leave one out");
  options.val_dataset = options.dataset;
}

/// What follows from other settings.
void settle(FineTuneOptions& options) {
  settle_split(options);
  if (options.eval_strategy.empty()) options.eval_strategy = options.val_dataset.empty() ? "no" : "steps";
  if (options.eval_steps == 0) options.eval_steps = options.save_steps;
  if (options.task == Task::Sft || options.task == Task::Pretrain) options.rlhf_type = "dpo";
  if (options.task == Task::Kto && options.rlhf_type == "dpo") options.rlhf_type = "kto";
  if (options.task == Task::Reward && options.rlhf_type == "dpo") options.rlhf_type = "rm";
}

}  // namespace

std::int64_t FineTuneOptions::micro_batches(std::int64_t world_size) const {
  const auto at_once = per_device_train_batch_size * world_size;
  return gradient_accumulation_steps.value_or(std::max<std::int64_t>(1, (16 + at_once - 1) / at_once));
}

const std::vector<SettingOf<FineTuneOptions>>& fine_tune_settings() {
  static const auto table = joined<SettingOf<O>>(
      what_is_trained(),
      {how_it_is_trained(), what_is_saved(), preferences(), parallel_settings<O>(), host_settings<O>()});
  return table;
}

FineTuneOptions read_fine_tune_options(Task task, const FineTuneSources& sources) {
  FineTuneOptions options;
  options.task = task;
  auto flags = take_over(sources.flags, "the command line");
  options.ignored = std::move(flags.ignored);
  auto problems = std::move(flags.problems);
  std::vector<Layer> layers;
  Layer defaults;
  if (!sources.config_file.empty()) {
    const auto& file = sources.config_file;
    auto job = take_over_job(read_config(file), file, task, flags.texts);
    options.ignored.insert(options.ignored.end(), job.taken.ignored.begin(), job.taken.ignored.end());
    problems.insert(problems.end(), job.taken.problems.begin(), job.taken.problems.end());
    layers.push_back({file, std::move(job.taken.texts)});
    defaults = {to_string(job.project) + "'s defaults", std::move(job.defaults)};
  }
  if (!sources.preset.empty()) layers.push_back(layer_of(find_preset(sources.preset).string(), options, problems));

  const auto verb = to_string(task);
  layers.push_back({"the command line", std::move(flags.texts)});
  std::string bits;
  for (auto& layer : layers) {
    // ms-swift says qlora by two keys.
    if (layer.texts.erase("quant_bits")) bits = layer.source;
    find_unknown(layer, verb, problems);
  }
  refuse_all(problems);
  const auto given = std::move(layers.back().texts);
  layers.back() = std::move(defaults);
  if (task == Task::Pretrain) {
    options.tuner_type = "none";
    options.packing = true;
  }
  read_settings(options, fine_tune_settings(), given, layers);
  if (!bits.empty()) {
    if (options.tuner_type == "none")
      refuse("quant_bits (" + bits + ") with tuner_type none; a base of 4 bits is not trained");
    options.tuner_type = "qlora";
  }
  settle(options);
  check(options);
  return options;
}

Texts comparable(const FineTuneOptions& options) {
  return comparable_settings(options, fine_tune_settings());
}

}  // namespace sealift::trainer
