// SPDX-License-Identifier: Apache-2.0
// The settings of `sft`, `dpo`, `kto`, `reward` and `pretrain`, by ms-swift's names where it has one.
// First step of these verbs: flags, environment, a config file (also another project's) and a preset in, one value out.
// Everything that can be refused without the model is refused here, once, and not by each rank.
#pragma once

#include "trainer/settings/job_options.hpp"
#include "trainer/settings/task.hpp"

namespace sealift::trainer {

struct FineTuneOptions : ParallelOptions, HostOptions {
  Task task = Task::Sft;

  // What is trained, and on what.
  std::int64_t expert_model_parallel_size = 1;  ///< ranks over which a layer's experts are spread

  std::string model;                     ///< a folder with config.json, safetensors and tokenizer
  std::vector<std::string> dataset;      ///< a token file, or what `tokenize` makes one of
  std::vector<std::string> val_dataset;  ///< the same for evaluation
  bool packing = false;
  std::int64_t max_length = 0;  ///< tokens of a row; 0: the longest example's, with packing at least 2,048
  std::string
      truncation_strategy;  ///< raise, delete, left, right, pairs, split; empty: raise, of pretrain's texts split
  std::string loss_scale = "default";  ///< default: all answers count; last_round; all
  bool skip_bad_lines = false;         ///< JSON lines that cannot be used are left out
  std::string data_format = "any";     ///< whose meaning a message's keys have: any, ms-swift, axolotl, ...
  std::string training_key;            ///< a message's key that says whether it is learned; empty: the format's own
  std::string dataset_dir;             ///< a folder with LLaMA-Factory's dataset_info.json; `dataset` has its names
  std::int64_t max_samples = 0;        ///< above 0: of each file of JSON lines the first so many
  double split_dataset_ratio = 0;      ///< rows that become val_dataset: below 1 a part of them, above so many
  bool alpaca_prompts = false;         ///< lines with an instruction get Alpaca's own prompt, and no chat template
  bool add_non_thinking_prefix =
      true;                      ///< in data of ms-swift, LLaMA-Factory, TRL each answer has thoughts, maybe empty
  bool literal_markers = false;  ///< <image> and its like are words like others
  std::string system;            ///< for chats without a system prompt
  bool use_chat_template = true;
  std::int64_t seed = 42;
  std::int64_t data_seed = 42;
  bool train_dataloader_shuffle = true;

  // What is changed of it.
  std::string tuner_type = "lora";
  std::vector<std::string> adapters;  ///< one folder in PEFT's layout to go on from; it says rank, targets ...
  std::int64_t lora_rank = 8;
  double lora_alpha = 32;
  double lora_dropout = 0.05;
  std::vector<std::string> target_modules = {"all-linear"};
  std::string target_regex;                  ///< not empty: instead of target_modules, of a projection's whole path
  std::vector<std::string> modules_to_save;  ///< trained whole beside the adapters
  bool use_rslora = false;
  bool use_dora = false;
  std::optional<double> lorap_lr_ratio;  ///< LoRA+: of B's learning rate to A's
  bool merge_lora = false;

  // The optimizer and how long it runs.
  std::int64_t per_device_train_batch_size = 1;
  std::optional<std::int64_t> gradient_accumulation_steps;  ///< unset: for a batch of at least 16, as ms-swift
  double num_train_epochs = 3;
  std::int64_t max_steps = 0;           ///< above 0: instead of epochs
  std::optional<double> learning_rate;  ///< unset: 1e-5 for the whole model, 1e-4 for adapters
  std::string lr_scheduler_type = "cosine";
  std::string lr_scheduler_kwargs;
  std::int64_t warmup_steps = 0;
  double warmup_ratio = 0;
  std::string warmup_rule = "up";  ///< axolotl: rounded down, and 3 % of the steps where no warm-up is said
  double weight_decay = 0.1;
  double adam_beta1 = 0.9, adam_beta2 = 0.95, adam_epsilon = 1e-8;
  double max_grad_norm = 1;
  bool gradient_checkpointing = false;
  bool own_kernels = false;  ///< where the device has them; no card has run them yet
  double router_aux_loss_coef = 0;

  // What is said and saved meanwhile.
  std::int64_t logging_steps = 1;
  std::string eval_strategy;    ///< no, steps, epoch; empty: steps where there are data for it
  std::int64_t eval_steps = 0;  ///< 0: save_steps
  std::int64_t per_device_eval_batch_size = 1;
  std::string save_strategy = "steps";
  std::int64_t save_steps = 500;
  std::int64_t save_total_limit = 0;     ///< 0: all
  std::int64_t early_stop_interval = 0;  ///< evaluations without a better one; 0: never
  bool load_best_model_at_end = false;
  std::int64_t sample_prompts = 0;  ///< how many prompts are answered between steps; 0: none
  std::int64_t sample_tokens = 64;
  std::string resume_from_checkpoint = "auto";  ///< auto, none, or a folder
  std::string on_nonfinite = "stop";            ///< stop, skip or rollback

  // Preferences.
  std::string rlhf_type = "dpo";
  std::string loss_type;
  std::optional<double> beta;
  double label_smoothing = 0;
  std::optional<double> rpo_alpha;
  std::optional<double> simpo_gamma, cpo_alpha;
  double desirable_weight = 1, undesirable_weight = 1;
  std::string ref_model;                  ///< a folder; empty: the model itself as it begins
  std::vector<std::string> ref_adapters;  ///< empty: the model without adapters; else the same as `adapters`
  double center_rewards_coefficient = 0;

  bool dry_run = false;
  std::vector<std::string> ignored = {};  ///< keys that were given and cannot matter; for a note, no setting

  bool has_adapters() const { return tuner_type != "none"; }
  double peak_rate() const { return learning_rate.value_or(has_adapters() ? 1e-4 : 1e-5); }

  /// Of a step, in a world of so many ranks.
  std::int64_t micro_batches(std::int64_t world_size) const;
};

/// All settings, in the order of the help text.
const std::vector<SettingOf<FineTuneOptions>>& fine_tune_settings();

/// Where the texts of a job come from.
struct FineTuneSources {
  Texts flags;              ///< by setting name, or by another that ms-swift has
  std::string config_file;  ///< TOML, or a job of another project; may be empty
  std::string preset;       ///< a name in the folder of presets, or a file; may be empty
};

/// Flag over environment over file over preset over default. Throws std::invalid_argument naming what is wrong and
/// where it came from.
FineTuneOptions read_fine_tune_options(Task task, const FineTuneSources& sources);

/// The settings that change the numbers, as text by name: a job goes on only from a checkpoint where these are equal.
Texts comparable(const FineTuneOptions& options);

}  // namespace sealift::trainer
