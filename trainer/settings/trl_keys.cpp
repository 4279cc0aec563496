// SPDX-License-Identifier: Apache-2.0
// The keys of TRL's job files, as its version 1.16.0 has them. See foreign_table.hpp.
// A key that is not here is looked for among transformers' and ours; one that is nowhere is refused.
// tests/train/settings/peer_keys.txt lists all its keys, and a test asks for a row for each.
#include "trainer/settings/foreign_reasons.hpp"
#include "trainer/settings/foreign_table.hpp"

namespace sealift::trainer {

std::vector<ForeignKey> trl_keys() {
  return {
      {"resume_from_checkpoint", "resume_from_checkpoint", {{"true", "resume_from_checkpoint=auto"}, {"false", ""}}},
      {"model_name_or_path", "model"},
      {"dataset_name", "dataset"},
      {"dataset_train_split", "", {{"train", ""}}, "give the file of that split as dataset_name"},
      {"dataset_test_split", "", {}, "evaluation data are val_dataset's"},
      {"dataset_config", "", {}, "give the file as dataset_name", true},
      {"dataset_text_field", "", {{"text", ""}}, "rename it to text in the data"},
      {"dataset_kwargs", "", {}, "leave it out", true},
      {"truncation_mode",
       "",
       {{"keep_start", "truncation_strategy=right"}, {"keep_end", "truncation_strategy=left"}},
       "keep_start or keep_end"},
      {"packing_strategy", "", {{"bfd", ""}}, "rows are packed by best fit"},
      {"eval_packing", "", {}, kNoEffect},
      {"use_peft", "", {{"true", "tuner_type=lora"}, {"false", ""}}, "true or false"},
      {"load_in_8bit", "", {{"false", ""}}, "the base is quantized to 4 bits or not at all"},
      {"lora_r", "lora_rank"},
      {"lora_target_modules", "target_modules"},
      {"lora_modules_to_save", "modules_to_save"},
      {"lora_task_type", "", {{"CAUSAL_LM", ""}, {"SEQ_CLS", "@reward"}}, "CAUSAL_LM, or SEQ_CLS of a reward model"},
      {"use_bnb_nested_quant", "", {}, "the scales of 4 bits are always quantized too"},
      {"dtype",
       "",
       {{"auto", ""}, {"float32", ""}, {"bfloat16", "precision=bf16"}, {"float16", "precision=fp16"}},
       "auto, float32, bfloat16 or float16"},
      {"assistant_only_loss", "", {{"true", "loss_scale=default"}, {"false", ""}}, "true or false"},
      {"completion_only_loss", "", {{"true", "loss_scale=last_round"}, {"false", "loss_scale=all"}}, "true or false"},
      {"loss_type", "loss_type", {{"nll", ""}, {"chunked_nll", ""}}},
      {"f_divergence_type", "", {{"reverse_kl", ""}}, "the divergence is the reverse KL"},
      {"precompute_ref_log_probs", "", {}, "the reference is always asked before the first step"},
      {"reference_free", "", {{"false", ""}}, "rlhf_type simpo or orpo need no reference"},
      {"chat_template_path", "", {}, "put it into the model's chat_template.jinja", true},
      {"eos_token", "", {}, "set it in the model's tokenizer_config.json", true},
      {"pad_token", "", {}, "rows are padded without a token"},
      {"datasets.*.path", "dataset"},
      {"datasets.*.data_files", "dataset"},
      {"datasets.*.split", "", {{"train", ""}}, "give the file of that split"},
      {"datasets.*.columns", "", {}, "columns outside of an example are ignored and counted"},
      {"datasets.*.fraction", "", {}, "cut the file first: head -n, or shuf -n", true},
      {"datasets.*", "", {}, "give the file as path", true},
      {"datasets", "", {}, "write a list of path", true},
      {"dataset_streaming", "", {}, kNoEffect},
      {"test_split_size", "split_dataset_ratio", {{"0", ""}, {"0.0", ""}}},
      {"shuffle_dataset", "", {}, "an order is drawn anyway; train_dataloader_shuffle says whether"},
      {"model_init_kwargs", "", {}, "leave it out: config.json says what the model is", true},
      {"pad_to_multiple_of", "", {}, kNoEffect},
      {"disable_dropout", "", {{"true", ""}, {"false", ""}}, "true or false"},
      {"f_alpha_divergence_coef", "", {}, kOfOthers},
      {"ignore_bias_buffers", "", {}, kNoEffect},
      {"use_weighting", "", {}, kLeaveOut, true},
      {"sync_ref_model", "", {}, "the reference stays as it begins", true},
      {"ref_model_*", "", {}, kOfOthers},
      {"precompute_ref_batch_size", "", {}, kNoEffect},
      {"lora_target_parameters", "", {}, "name the targets in lora_target_modules", true},
      {"padding_free", "", {}, kNoEffect},
      {"trust_remote_code", "", {}, "there is no Python to load"},
      {"attn_implementation", "", {}, kNoEffect},
      {"activation_offloading", "", {}, kNoEffect},
      {"max_prompt_length", "", {}, "set max_length", true},
      {"max_completion_length", "", {}, "set max_length", true},
  };
}

}  // namespace sealift::trainer
