// SPDX-License-Identifier: Apache-2.0
// The table of ms-swift's keys that have no setting of the same name, and the files that it writes and reads.
// See swift_names.hpp. Names and defaults: ms-swift 3 and 4, "Command-line parameters", and transformers'
// TrainingArguments, which its args.json includes.
// args.json has every key with its default, so what belongs to a feature that is off must pass.
#include "swift_names.hpp"

#include "refuse.hpp"

#include <nlohmann/json.hpp>

#include <fnmatch.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sealift::trainer {
namespace {

/// Keys by another name.
const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> table = {{"data", "dataset"},
                                                           {"eval_data", "val_dataset"},
                                                           {"tuner", "tuner_type"},
                                                           {"train_type", "tuner_type"},
                                                           {"sft_type", "tuner_type"},
                                                           {"model_id_or_path", "model"},
                                                           {"out", "output_dir"},
                                                           {"checkpoint", "resume_from_checkpoint"},
                                                           {"expert_parallel_size", "expert_model_parallel_size"}};
  return table;
}

/// A key (`*` stands for any run of characters) that is accepted with these values only.
struct Only {
  const char* key;
  std::vector<std::string> values;
  const char* remedy;
};

const std::vector<Only>& only() {
  static const std::vector<Only> table = {
      {"deepspeed",
       {""},
       "ranks shard by themselves: leave it out and set parallel_method = fsdp (for zero3), with "
       "reshard_after_forward = false (zero2), or ddp (zero0); offload = [\"parameters\"] for _offload"},
      {"zero_hpz_partition_size", {"", "1"}, "set reshard_group"},
      {"deepspeed_autotp_size", {"", "1"}, "there is no tensor parallelism; use fsdp"},
      {"fsdp", {"", "[]"}, "set parallel_method = fsdp"},
      {"sequence_parallel_size", {"", "1"}, "there is no sequence parallelism"},
      {"tuner_backend", {"peft"}, "adapters are PEFT's"},
      {"task_type", {"causal_lm"}, "sealift-train reward trains a model with a score"},
      {"lora_bias", {"none"}, "biases stay frozen under LoRA"},
      {"init_weights", {"true"}, "LoRA starts as PEFT's default: A Kaiming-uniform, B zero"},
      {"init_lora_weights", {"true"}, "LoRA starts as PEFT's default: A Kaiming-uniform, B zero"},
      {"lora_dtype", {"", "float32", "AUTO"}, "adapters are fp32"},
      {"target_parameters", {""}, "name the targets in target_modules"},
      {"tensor_model_parallel_size", {"", "1"}, "there is no tensor parallelism; use fsdp"},
      {"pipeline_model_parallel_size", {"", "1"}, "there is no pipeline parallelism; use fsdp"},
      {"context_parallel_size", {"", "1"}, "there is no context parallelism; use fsdp with gradient_checkpointing"},
      {"freeze_parameters", {""}, "use LoRA to train a part"},
      {"freeze_parameters_regex", {""}, "use LoRA to train a part"},
      {"freeze_parameters_ratio", {"0", "0.0"}, "use LoRA to train a part"},
      {"trainable_parameters", {""}, "use LoRA to train a part"},
      {"trainable_parameters_regex", {""}, "use LoRA to train a part"},
      {"quant_method", {"", "bnb"}, "the base is quantized to bitsandbytes' NF4 only: tuner = qlora"},
      {"bnb_4bit_quant_type", {"nf4"}, "the base is quantized to NF4 only"},
      {"bnb_4bit_use_double_quant", {"true"}, "scales are always quantized too"},
      {"bnb_4bit_compute_dtype", {"", "bfloat16", "float16", "float32"}, "set precision"},
      {"optim", {"", "adamw_torch", "adamw_torch_fused", "adamw", "adamw_hf"}, "the optimizer is AdamW"},
      {"optimizer", {"", "adamw"}, "the optimizer is AdamW"},
      {"optim_args", {""}, "set adam_beta1, adam_beta2, adam_epsilon"},
      {"use_galore", {"false"}, "leave it out"},
      {"lisa_activated_layers", {"0"}, "leave it out"},
      {"neftune_noise_alpha", {"", "0", "0.0"}, "there is no NEFTune noise"},
      {"enable_dft_loss", {"false"}, "leave it out"},
      {"enable_channel_loss", {"false"}, "leave it out"},
      {"label_smoothing_factor", {"", "0", "0.0"}, "leave it out"},
      {"streaming", {"false"}, "data are token files, made once by tokenize"},
      {"cached_dataset", {""}, "give a token file as dataset"},
      {"split_dataset_ratio", {"0", "0.0"}, "give evaluation data as val_dataset"},
      {"interleave_prob", {""}, "mix the data in the file"},
      {"columns", {""}, "name the columns in the data as docs/sft.md says"},
      {"rope_scaling", {""}, "set it in the model's config.json"},
      {"max_model_len", {""}, "set max_length"},
      {"new_special_tokens", {""}, "add them to the model's tokenizer and embedding first"},
      {"custom_register_path", {""}, "there is no Python to load"},
      {"external_plugins", {""}, "there is no Python to load"},
      {"torch_compile", {"false"}, "leave it out"},
      {"use_ray", {"false"}, "start ranks by --ranks or a launcher"},
      {"push_to_hub", {"false"}, "nothing is sent anywhere"},
      {"predict_with_generate", {"false"}, "evaluation is by loss"},
      {"metric_for_best_model", {"", "loss", "eval_loss"}, "the best model is that of the least loss"},
      {"greater_is_better", {"", "false"}, "the best model is that of the least loss"},
      {"save_only_model", {"false"}, "checkpoints can be resumed; the model alone is written at the end"},
      {"resume_only_model", {"false"}, "leave it out"},
      {"ignore_data_skip", {"false"}, "a resumed job goes on with the next sample"},
      {"group_by_length", {"false"}, "set packing"},
      {"packing_length", {""}, "set max_length"},
      {"auto_find_batch_size", {"false"}, "leave it out"},
      {"vit_lr", {""}, "only text models are trained"},
      {"aligner_lr", {""}, "only text models are trained"},
      {"max_epochs", {""}, "set num_train_epochs"},
      {"loss_weights", {""}, "give one loss_type"},
      {"ld_alpha", {""}, "leave it out"},
      {"num_labels", {"", "1"}, "sealift-train reward trains a model with one score"},
      {"init_strategy", {""}, "every tensor must be stored"},
      {"disable_auto_column_mapping", {"false"}, "name the columns in the data as docs/sft.md says"},
      {"disable_ignore_empty_think", {"false"}, "leave it out"},
      {"decision_*", {"", "0", "0.0", "false"}, "leave it out"},
      {"train_sampling_strategy", {"random"}, "set packing"},
      {"packing_strategy", {"", "binpack"}, "leave it out"},
      {"use_swift_lora", {"false"}, "leave it out"},
  };
  return table;
}

/// Keys that cannot change the numbers here, or that belong to what is refused above.
const std::vector<const char*>& without_effect() {
  static const std::vector<const char*> table = {
      "report_to",
      "run_name",
      "log_*",
      "logging_dir",
      "logging_first_step",
      "logging_strategy",
      "logging_nan_inf_filter",
      "disable_tqdm",
      "dataloader_*",
      "dataset_num_proc",
      "packing_num_proc",
      "load_from_cache_file",
      "lazy_tokenize",
      "add_version",
      "check_model",
      "create_checkpoint_symlink",
      "save_on_each_node",
      "save_safetensors",
      "safe_serialization",
      "max_shard_size",
      "use_hf",
      "hub_*",
      "load_args",
      "load_data_args",
      "ignore_args_error",
      "ddp_backend",
      "ddp_timeout",
      "ddp_*",
      "device_map",
      "max_memory",
      "attn_impl",
      "model_type",
      "model_revision",
      "model_name",
      "model_author",
      "model_kwargs",
      "model_info",
      "model_meta",
      "model_dir",
      "model_suffix",
      "hub",
      "local_repo_path",
      "template",
      "template_backend",
      "agent_template",
      "response_prefix",
      "norm_bbox",
      "max_pixels",
      "padding_side",
      "padding_free",
      "use_logits_to_keep",
      "use_liger_kernel",
      "full_determinism",
      "tf32",
      "average_tokens_across_devices",
      "remove_unused_columns",
      "train_sampler_random",
      "dataset_shuffle",
      "val_dataset_shuffle",
      "shuffle_buffer_size",
      "stopping_strategy",
      "download_mode",
      "strict",
      "custom_dataset_info",
      "acc_strategy",
      "acc_steps",
      "metric",
      "do_*",
      "overwrite_output_dir",
      "gradient_checkpointing_kwargs",
      "vit_gradient_checkpointing*",
      "freeze_llm",
      "freeze_vit",
      "freeze_aligner",
      "local_rank",
      "rank",
      "global_world_size",
      "local_world_size",
      "world_size",
      "n_gpu",
      "node_rank",
      "nnodes",
      "swift_version",
      "timestamp",
      "training_args",
      "train_stage",
      "fsdp_*",
      "accelerator_config",
      "parallelism_config",
      "use_cpu",
      "no_cuda",
      "use_ipex",
      "jit_mode_eval",
      "include_*",
      "eval_use_*",
      "eval_dataset*",
      "eval_limit",
      "eval_generation_config",
      "eval_delay",
      "eval_on_start",
      "eval_accumulation_steps",
      "eval_do_concat_batches",
      "batch_eval_metrics",
      "prediction_loss_only",
      "torch_empty_cache_steps",
      "torchdynamo",
      "torch_compile_*",
      "skip_memory_metrics",
      "past_index",
      "label_names",
      "length_column_name",
      "ignore_logits",
      "restore_callback_states_from_checkpoint",
      "mp_parameters",
      "ray_*",
      "device_groups",
      "resume_only_*",
      "use_flash_ckpt",
      "project",
      "trackio_*",
      "neftune_*",
      "optim_target_modules",
      "half_precision_backend",
      "fp16_*",
      "bf16_full_eval",
      "use_mps_device",
      "use_legacy_prediction_loop",
      "sortish_sampler",
      "generation_*",
      "max_new_tokens",
      "temperature",
      "top_k",
      "top_p",
      "repetition_penalty",
      "num_beams",
      "stream",
      "stop_words",
      "logprobs",
      "top_logprobs",
      "problem_type",
      "hqq_axis",
      "bnb_4bit_quant_storage",
      "load_in_8bit",
      // of features that are refused where they are switched on
      "galore_*",
      "adalora_*",
      "lora_ga_*",
      "vera_*",
      "boft_*",
      "fourier_*",
      "reft_*",
      "llamapro_*",
      "lisa_*",
      "swanlab_*",
      "vllm_*",
      "sglang_*",
      "lmdeploy_*",
      "adapter_*",
      "discopop_tau",
      "max_completion_length",
      "ref_model_type",
      "ref_model_revision",
      "reward_*",
      "num_ppo_epochs",
      "whiten_rewards",
      "kl_coef",
      "cliprange",
      "cliprange_value",
      "vf_coef",
      "gamma",
      "lam",
      "num_mini_batches",
      "local_rollout_forward_batch_size",
      "num_sample_generations",
      "missing_eos_penalty",
      "lmbda",
      "sft_alpha",
      "seq_kd",
      "offload_model",
      "offload_optimizer",
      "offload_teacher_model",
      "num_generations",
      "steps_per_generation",
      "ds3_gather_for_generation",
      "use_vllm",
      "async_generate",
      "sleep_level",
      "epsilon",
      "epsilon_high",
      "delta",
      "num_iterations",
      "multi_turn_*",
      "max_turns",
      "completion_length_limit_scope",
      "dynamic_sample",
      "max_resample_times",
      "overlong_filter",
      "scale_rewards",
      "cosine_*",
      "repetition_n_grams",
      "repetition_max_penalty",
      "soft_*",
      "top_entropy_quantile",
      "importance_sampling_level",
      "wandb_log_unique_prompts",
      "move_model_batches",
      "advantage_estimator",
      "kl_in_reward",
      "sync_ref_model",
      "ref_model_sync_steps",
      "ref_model_mixup_alpha",
      "teacher_*",
      "quantization_bit",
      "weighted_*",
      "_*",  // what swift remembers of its own checks
      "template_meta",
      "add_non_thinking_prefix",
      "evaluation_strategy",  // swift's eval_strategy, once more
      "enable_jit_checkpoint",
      "enable_npu_model_patch",
      "use_cache",
  };
  return table;
}

bool matches(const char* pattern, const std::string& key) {
  return fnmatch(pattern, key.c_str(), 0) == 0;
}

std::string quoted(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : " or ") + (value.empty() ? "nothing" : value);
  return text;
}

/// The three keys by which ms-swift says a dtype, as our one. Weights in float32 say nothing against computing in
/// another, which bf16 and fp16, read before torch_dtype, may have said: ms-swift itself adds fp16 to such weights.
void set_precision(const std::string& key, const std::string& text, const std::string& source, Texts& texts) {
  static const std::map<std::string, std::string> dtypes = {
      {"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}};
  std::string precision;
  if (key == "torch_dtype") {
    if (text.empty() || text == "auto") return;
    const auto known = dtypes.find(text.starts_with("torch.") ? text.substr(6) : text);
    if (known == dtypes.end()) refuse(source + ": torch_dtype is '" + text + "'; use float32, bfloat16 or float16");
    precision = known->second;
    if (precision == "fp32") {
      texts.emplace("precision", precision);
      return;
    }
  } else {
    if (text != "true") return;
    precision = key;
  }
  const auto [other, is_new] = texts.emplace("precision", precision);
  if (!is_new && other->second != precision) {
    refuse(source + ": " + key + " means precision " + precision + ", but another key means " + other->second +
           "; give one of torch_dtype, bf16, fp16, precision");
  }
}

/// A key that does not pass as it is; false: it does.
bool translate(const std::string& key, const std::string& text, const std::string& source, TakenOver& result) {
  if (key == "torch_dtype" || key == "bf16" || key == "fp16") {
    set_precision(key, text, source, result.texts);
    return true;
  }
  if (key == "quant_bits" || key == "load_in_4bit") {
    if (text == "4" || text == "true") {
      result.texts["quant_bits"] = "4";
    } else if (!text.empty() && text != "0" && text != "false") {
      refuse(source + ": quant_bits is '" + text + "'; the base is quantized to 4 bits (tuner = qlora) or not at all");
    }
    return true;
  }
  if (key == "tuner_type" && text == "full") {
    result.texts[key] = "none";
    return true;
  }
  if (key == "max_steps" && text == "-1") return true;
  if (key == "warmup_steps" && text.find('.') != std::string::npos) {  // transformers 5: below 1, a part of the steps
    if (text != "0.0") result.texts.emplace("warmup_ratio", text);
    return true;
  }
  for (const auto& each : only()) {
    if (!matches(each.key, key)) continue;
    if (std::find(each.values.begin(), each.values.end(), text) == each.values.end()) {
      refuse(source + ": " + key + " is '" + text + "'; here it can only be " + quoted(each.values) + ": " +
             each.remedy);
    }
    return true;
  }
  for (const char* pattern : without_effect()) {
    if (!matches(pattern, key)) continue;
    result.ignored.push_back(key);
    return true;
  }
  return false;
}

std::string text_of(const nlohmann::json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float() && std::abs(value.get<double>()) < 1e15 && std::trunc(value.get<double>()) == value) {
    return std::to_string(value.get<std::int64_t>());  // transformers writes numbers of steps as 100.0
  }
  if (!value.is_array()) return value.is_object() && value.empty() ? "" : value.dump();
  std::string text;
  for (const auto& item : value) text += (text.empty() ? "" : std::string(1, kSeparator)) + text_of(item);
  return text;
}

std::string content_of(const std::string& path) {
  constexpr std::size_t kMost = 16 << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.str().size() > kMost) refuse(path + " has more than 16 MiB; it is no settings file");
  return text.str();
}

Texts read_json(const std::string& path) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(content_of(path));
  } catch (const nlohmann::json::exception& error) {
    refuse(path + ": " + error.what());
  }
  if (!json.is_object()) refuse(path + " is no JSON object; give ms-swift's args.json, or settings by name");
  Texts texts;
  for (const auto& [key, value] : json.items()) {
    if (auto text = text_of(value); !text.empty()) texts[key] = std::move(text);
  }
  return texts;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// A YAML scalar without its quotes and comment; an empty text for null.
std::string scalar(const std::string& raw, const std::string& where) {
  auto text = trimmed(raw);
  if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
    const auto end = text.find(text[0], 1);
    const auto rest = end == std::string::npos ? "?" : trimmed(text.substr(end + 1));
    if (end == std::string::npos || (!rest.empty() && rest[0] != '#') ||
        text.substr(0, end).find('\\') != std::string::npos) {
      refuse(where + ": a text in quotes must end on its line and have no backslash");
    }
    return text.substr(1, end - 1);
  }
  if (const auto comment = text.find(" #"); comment != std::string::npos) text = trimmed(text.substr(0, comment));
  if (text.starts_with("#")) return "";
  if (!text.empty() && std::string("[{&*!|>%@`").find(text[0]) != std::string::npos) {
    refuse(where + ": '" + text + "' is more than a value; write key: value, or a list of values");
  }
  if (text == "null" || text == "~" || text == "None") return "";
  if (text == "True" || text == "yes" || text == "on") return "true";
  if (text == "False" || text == "no" || text == "off") return "false";
  return text;
}

/// [a, b] in one line.
std::string flow_list(const std::string& text, const std::string& where) {
  const auto end = text.find(']');
  const auto rest = end == std::string::npos ? "?" : trimmed(text.substr(end + 1));
  if (end == std::string::npos || (!rest.empty() && rest[0] != '#')) refuse(where + ": a list must end on its line");
  std::istringstream items(text.substr(1, end - 1));
  std::string joined;
  for (std::string item; std::getline(items, item, ',');) {
    joined += (joined.empty() ? "" : std::string(1, kSeparator)) + scalar(item, where);
  }
  return joined;
}

/// Keys with a value or a list of values: what ms-swift's own examples use of YAML.
Texts read_yaml(const std::string& path) {
  std::istringstream lines(content_of(path));
  Texts texts;
  std::string key;  // of the list that the next lines may add to
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto where = path + ": line " + std::to_string(++number);
    const auto text = trimmed(line);
    if (text.empty() || text[0] == '#' || text == "---") continue;
    if (text.starts_with("- ") && !key.empty()) {
      auto& list = texts[key];
      list += (list.empty() ? "" : std::string(1, kSeparator)) + scalar(text.substr(2), where);
      continue;
    }
    const auto colon = text.find(':');
    const bool is_key = colon != std::string::npos && (colon + 1 == text.size() || text[colon + 1] == ' ');
    if (line[0] == ' ' || line[0] == '\t' || !is_key) {
      refuse(where + ": '" + text + "' is no 'key: value'; nested YAML is not read");
    }
    key = trimmed(text.substr(0, colon));
    const auto value = trimmed(text.substr(colon + 1));
    if (texts.contains(key)) refuse(where + ": " + key + " is there twice");
    texts[key] = value.starts_with("[") ? flow_list(value, where) : scalar(value, where);
    if (!texts[key].empty()) key.clear();
  }
  std::erase_if(texts, [](const auto& each) { return each.second.empty(); });
  return texts;
}

}  // namespace

TakenOver take_over(const Texts& texts, const std::string& source) {
  TakenOver result;
  std::map<std::string, std::string> given_as;
  for (const auto& [given, text] : texts) {
    const auto alias = aliases().find(given);
    const auto& key = alias == aliases().end() ? given : alias->second;
    if (translate(key, text, source, result)) continue;
    const auto [other, is_new] = result.texts.emplace(key, text);
    const auto& first = given_as.emplace(key, given).first->second;
    if (!is_new && other->second != text) {
      if (key == "precision") refuse(source + ": precision is " + text + ", but another key means " + other->second);
      refuse(source + ": " + (given == key ? first : given) + " is another name of " + key +
             ", and both are given; leave one out");
    }
  }
  return result;
}

Texts read_config(const std::string& path) {
  const auto ending = std::filesystem::path(path).extension();
  if (ending == ".json") return read_json(path);
  if (ending == ".yaml" || ending == ".yml") return read_yaml(path);
  return read_toml(path, [](const auto&) { return Shape::Either; });
}

}  // namespace sealift::trainer
