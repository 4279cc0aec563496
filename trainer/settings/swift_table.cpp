// SPDX-License-Identifier: Apache-2.0
// See swift_table.hpp. Names and defaults: ms-swift 3 and 4, "Command-line parameters", and transformers'
// TrainingArguments, which its args.json includes.
// args.json has every key with its default, so what belongs to a feature that is off must pass.
#include "trainer/settings/swift_table.hpp"

#include <sstream>

namespace sealift::trainer {

const std::map<std::string, std::string>& swift_aliases() {
  static const std::map<std::string, std::string> table = {{"data", "dataset"},
                                                           {"eval_data", "val_dataset"},
                                                           {"tuner", "tuner_type"},
                                                           {"train_type", "tuner_type"},
                                                           {"sft_type", "tuner_type"},
                                                           {"model_id_or_path", "model"},
                                                           {"out", "output_dir"},
                                                           {"checkpoint", "resume_from_checkpoint"},
                                                           {"expert_parallel_size", "expert_model_parallel_size"},
                                                           {"activation_checkpointing", "gradient_checkpointing"}};
  return table;
}

const std::vector<OnlyValues>& swift_only() {
  static const std::vector<OnlyValues> table = {
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

namespace {

/// Keys in groups, each with what is said of it. `_*` is what ms-swift remembers of its own checks,
/// evaluation_strategy its eval_strategy, once more.
const std::vector<std::pair<const char*, const char*>>& ignored_groups() {
  static const std::vector<std::pair<const char*, const char*>> table = {
      {"it does not change the numbers",
       "report_to run_name log_* logging_dir logging_first_step logging_strategy disable_tqdm dataloader_num_workers "
       "dataloader_pin_memory dataloader_p* dataloader_multiprocessing_context dataloader_in_order dataset_num_proc "
       "packing_num_proc load_from_cache_file lazy_tokenize add_version check_model create_checkpoint_symlink "
       "save_on_each_node save_safetensors safe_serialization max_shard_size ddp_* device_map max_memory attn_impl "
       "experts_impl padding_side padding_free use_logits_to_keep use_liger_kernel liger_kernel_config "
       "full_determinism tf32 remove_unused_columns gradient_checkpointing_kwargs activation_checkpointing_kwargs "
       "vit_gradient_checkpointing* local_rank rank global_world_size local_world_size world_size n_gpu node_rank "
       "nnodes "
       "fsdp_* accelerator_config parallelism_config use_cpu no_cuda use_ipex jit_mode_eval include_* eval_use_* "
       "eval_accumulation_steps eval_do_concat_batches batch_eval_metrics prediction_loss_only torch_empty_cache_steps "
       "torchdynamo torch_compile_* skip_memory_metrics ray_* device_groups project trackio_* half_precision_backend "
       "fp16_* bf16_full_eval use_mps_device use_legacy_prediction_loop hqq_axis bnb_4bit_quant_storage use_cache "
       "mp_parameters wandb_log_unique_prompts debug enable_jit_checkpoint enable_npu_model_patch use_flash_ckpt "
       "ignore_logits restore_callback_states_from_checkpoint move_model_batches do_* overwrite_output_dir "
       "custom_dataset_info train_sampler_random dataset_shuffle val_dataset_shuffle shuffle_buffer_size "
       "stopping_strategy strict download_mode metric eval_delay eval_on_start past_index"},
      {"nothing is downloaded or sent", "use_hf hub_* model_revision local_repo_path hub"},
      {"config.json and the tokenizer's files say it",
       "model_type model_name model_author model_kwargs model_info model_meta model_dir model_suffix problem_type "
       "template_meta train_stage"},
      {"the model's own chat template is used, which may differ from ms-swift's of this name",
       "template template_backend agent_template response_prefix enable_thinking preserve_thinking"},
      {"a loss that is not finite is said; set on_nonfinite", "logging_nan_inf_filter"},
      {"each step takes its rows in the drawn order, the last step the remaining rows", "dataloader_drop_last"},
      {"the loss is divided by the tokens of all ranks", "average_tokens_across_devices acc_strategy"},
      {"weights of tokens are 0 or 1: what is above 0 is learned", "is_binary_loss_scale"},
      {"it says what was, not what is to be",
       "swift_version timestamp training_args load_args load_data_args acc_steps _* "
       "ignore_args_error evaluation_strategy"},
      {"only text is trained on", "norm_bbox max_pixels freeze_llm freeze_vit freeze_aligner"},
      {"it is read by a feature that is refused where it is switched on",
       "resume_only_* neftune_* optim_target_modules length_column_name label_names galore_* adalora_* lora_ga_* "
       "vera_* "
       "boft_* fourier_* reft_* llamapro_* lisa_* adapter_* discopop_tau weighted_* load_in_8bit quantization_bit "
       "callbacks response_length extra_eval_args mrl_dims cached_val_dataset eval_metric"},
      {"it is read where answers are generated, or by methods that generate them while they train",
       "eval_dataset* eval_limit eval_generation_config sortish_sampler generation_* max_new_tokens temperature top_k "
       "top_p min_p repetition_penalty num_beams stream stop_words logprobs top_logprobs structured_outputs_regex "
       "swanlab_* vllm_* sglang_* lmdeploy_* max_completion_length ref_model_type ref_model_revision reward_* "
       "num_ppo_epochs whiten_rewards kl_coef cliprange cliprange_value vf_coef gamma lam num_mini_batches "
       "local_rollout_forward_batch_size num_sample_generations missing_eos_penalty lmbda sft_alpha seq_kd "
       "offload_model offload_optimizer offload_teacher_model num_generations* steps_per_generation "
       "ds3_gather_for_generation use_vllm async_generate sleep_level epsilon epsilon_high delta num_iterations "
       "multi_turn_* max_turns completion_length_limit_scope dynamic_sample max_resample_times overlong_filter "
       "scale_rewards cosine_* repetition_n_grams repetition_max_penalty soft_* top_entropy_quantile "
       "importance_sampling_level advantage_* kl_in_reward sync_ref_model ref_model_sync_steps "
       "ref_model_mixup_alpha teacher_* chord_* enable_flattened_weight_sync fipo_* gkd_* gym_env use_gym_env "
       "off_policy_* real_tau rlsd_* rollout_* sdar_* tau_neg tau_pos"}};
  return table;
}

}  // namespace

const std::vector<IgnoredKey>& swift_without_effect() {
  static const std::vector<IgnoredKey> table = [] {
    std::vector<IgnoredKey> keys;
    for (const auto& [reason, names] : ignored_groups()) {
      std::istringstream words(names);
      for (std::string key; words >> key;) keys.push_back({key, reason});
    }
    return keys;
  }();
  return table;
}

}  // namespace sealift::trainer
