// SPDX-License-Identifier: Apache-2.0
// See foreign_table.hpp. What projects take by themselves, and the rules that hold in their jobs.
#include "trainer/settings/foreign_table.hpp"

namespace sealift::trainer {
const std::vector<ForeignKey>& foreign_keys(Project project) {
  static const std::vector<ForeignKey> of_llama_factory = llama_factory_keys(), of_axolotl = axolotl_keys(),
                                       of_trl = trl_keys(), none;
  switch (project) {
    case Project::LlamaFactory:
      return of_llama_factory;
    case Project::Axolotl:
      return of_axolotl;
    case Project::Trl:
      return of_trl;
    default:
      return none;
  }
}

Texts foreign_defaults(Project project, Task task) {
  const bool texts = task == Task::Pretrain;
  Texts all = {{"lr_scheduler_type", "linear"},
               {"weight_decay", "0"},
               {"adam_beta2", "0.999"},
               {"gradient_accumulation_steps", "1"}};
  switch (project) {
    case Project::LlamaFactory:
      all.insert({{"per_device_train_batch_size", "8"},
                  {"learning_rate", "5e-5"},
                  {"max_length", "2048"},
                  {"truncation_strategy", texts ? "split" : "pairs"},
                  {"lora_dropout", "0"},
                  {"dataset_dir", "data"},
                  {"gradient_checkpointing", "true"},
                  {"add_non_thinking_prefix", "false"},
                  {"data_format", "llama-factory"}});
      return all;
    case Project::Axolotl:
      all["lr_scheduler_type"] = "cosine";
      all.insert({{"num_train_epochs", "1"},
                  {"max_length", "512"},
                  {"lora_dropout", "0"},
                  {"tuner_type", "none"},
                  {"truncation_strategy", texts ? "split" : "delete"},
                  {"save_strategy", "epoch"},
                  {"save_total_limit", "4"},
                  {"precision", "bf16"},
                  {"warmup_rule", "axolotl"},
                  {"data_format", "axolotl"}});
      return all;
    case Project::Trl:
      all.insert({{"per_device_train_batch_size", "8"},
                  {"max_length", "1024"},
                  {"tuner_type", "none"},
                  {"truncation_strategy", "right"},
                  {"lora_rank", "16"},
                  {"lora_dropout", task == Task::Sft || texts ? "0.05" : "0"},
                  {"gradient_checkpointing", "true"},
                  {"precision", "bf16"},
                  {"data_format", "trl"},
                  {"learning_rate", task == Task::Sft      ? "2e-5"
                                    : task == Task::Reward ? "1e-4"
                                    : texts                ? "5e-5"
                                                           : "1e-6"}});
      return all;
    case Project::MsSwift:
      return {{"data_format", "ms-swift"}};
    default:
      return {};
  }
}

std::vector<std::pair<const char*, const char*>> foreign_rules(Project project) {
  switch (project) {
    case Project::LlamaFactory:
      return {
          {"too long: each question and its answer share cutoff_len, as there (truncation_strategy pairs)",
           "过长：每一问一答分享 cutoff_len，与其一致（truncation_strategy pairs）"},
          {"the newline after an answer is learned, as there", "答案后的换行计入学习，与其一致"},
          {"keys of messages such as weight or loss are not heeded, as there; each is counted when data are read",
           "消息的 weight、loss 等键不生效，与其一致；读取数据时逐一计数"},
          {"columns and tags are those of dataset_info.json; rows that it loses in silence are bad lines here",
           "列和标签取自 dataset_info.json；它悄悄丢弃的行在此是坏行"},
          {"alpha is twice the rank unless it is given, as there", "未给出时 alpha 是 rank 的两倍，与其一致"},
          {"thoughts: with a template that thinks (qwen3) each answer has them, empty ones too, all learned, as there; "
           "else the model's own chat template says which stay",
           "思考内容：用会思考的模板（qwen3）时每个答案都有，空的也有，全部学习，与其一致；否则由模型自己的对话模板决"
           "定"},
          {"the loss is divided by the tokens of all ranks, as there", "损失除以所有进程的词元数，与其一致"},
          {"weights decay, embeddings and LoRA's matrices too, norms and biases not, as there; unset 0",
           "权重衰减：包括嵌入和 LoRA 矩阵，不含归一化和偏置，与其一致；未给出时为 0"}};
    case Project::Axolotl:
      return {
          {"too long: left out and counted, as there (excess_length_strategy drop)",
           "过长：略去并计数，与其一致（excess_length_strategy drop）"},
          {"the newline after an answer is not learned, its end token is, as there; of templates with marks what "
           "these enclose",
           "答案后的换行不学习，结束词元学习，与其一致；带标记的模板按其标记"},
          {"an end of a turn that is not the tokenizer's end token is learned; axolotl needs eot_tokens for it",
           "与分词器结束词元不同的一轮对话的结束符也学习；axolotl 需要 eot_tokens"},
          {"only one key of a message counts: message_field_training names it, as there",
           "消息的键中只有 message_field_training 指定的生效，与其一致"},
          {"warm-up: rounded down; unset 3 % of the steps and at most 100, as there",
           "预热：向下取整；未给出时为步数的 3% 且最多 100 步，与其一致"},
          {"thoughts: the model's own chat template says which stay, as there; empty ones are not learned, as there",
           "思考内容：由对话模板决定去留，与其一致；空的不学习，与其一致"},
          {"the loss is divided by the tokens of all ranks; axolotl divides by those of each rank, then averages",
           "损失除以所有进程的词元数；axolotl 先除以各进程自己的，再取平均"},
          {"trained values are kept in fp32; axolotl's bf16 keeps them in bf16",
           "可训练的数值保持 fp32；axolotl 的 bf16 以 bf16 保存"},
          {"weights decay, embeddings and LoRA's matrices too, norms and biases not, as there; unset 0",
           "权重衰减：包括嵌入和 LoRA 矩阵，不含归一化和偏置，与其一致；未给出时为 0"},
          {"a key that axolotl does not know it ignores in silence; here it is refused",
           "axolotl 悄悄忽略不认识的键；在此拒绝"}};
    case Project::Trl:
      return {{"too long: cut at the end, as there; a row without a token to learn, which TRL loses, is a bad line",
               "过长：从末尾截断，与其一致；没有可学词元的行 TRL 会悄悄丢掉，在此是坏行"},
              {"the newline after an answer is learned, as there", "答案后的换行计入学习，与其一致"},
              {"thoughts: where all answers are learned each has them, empty ones too, all learned, as in TRL's own "
               "Qwen3 template; else the model's own chat template says which stay",
               "思考内容：学习所有答案时每个答案都有，空的也有，全部学习，与 TRL 自带的 Qwen3 "
               "模板一致；否则由模型自己的对话模板决定"},
              {"the loss is divided by the tokens of all ranks, as there", "损失除以所有进程的词元数，与其一致"},
              {"keys of messages such as weight or loss are not heeded, as there; each is counted when data are read",
               "消息的 weight、loss 等键不生效，与其一致；读取数据时逐一计数"},
              {"dpo, kto, reward: dropout is off unless disable_dropout is false, as there",
               "dpo、kto、reward：除非 disable_dropout 为 false，否则不用 dropout，与其一致"},
              {"weights decay, embeddings and LoRA's matrices too, norms and biases not, as there; unset 0",
               "权重衰减：包括嵌入和 LoRA 矩阵，不含归一化和偏置，与其一致；未给出时为 0"},
              {"a key that TRL's scripts do not know they ignore in silence; here it is refused",
               "TRL 的脚本悄悄忽略不认识的键；在此拒绝"}};
    case Project::MsSwift:
      return {
          {"of a message's keys loss and loss_scale are heeded, as there; weight and others are counted",
           "消息的键中 loss 和 loss_scale 生效，与其一致；weight 等只计数"},
          {"too long: refused unless truncation_strategy says it; ms-swift deletes rows by default, or takes another",
           "过长：除非 truncation_strategy 另有说明，否则拒绝；ms-swift 默认删除该行，或换成另一行"},
          {"the newline after an answer is learned, as there", "答案后的换行计入学习，与其一致"},
          {"FILE#20 is twenty rows of it at random, by data_seed; not the same twenty as there",
           "FILE#20 表示随机取 20 行，由 data_seed 决定；与它所取的不同"},
          {"rows that ms-swift deletes in silence (a role or content that it does not know) are bad lines here",
           "ms-swift 悄悄删除的行（不认识的角色或内容）在此是坏行"},
          {"thoughts: each answer of a model that may think has them, as there; empty ones are not learned; of "
           "reasoning_content too, which ms-swift loses",
           "思考内容：会思考的模型的每个答案都有，与其一致；空的不学习；reasoning_content 也算，ms-swift 会丢掉它"},
          {"the loss is divided by the tokens of all ranks, as there", "损失除以所有进程的词元数，与其一致"},
          {"weights decay, embeddings and LoRA's matrices too, norms and biases not, as there; unset 0.1",
           "权重衰减：包括嵌入和 LoRA 矩阵，不含归一化和偏置，与其一致；未给出时为 0.1"}};
    default:
      return {
          {"every key of a message that says it is not learned is heeded", "消息中所有表示不学习的键都生效"},
          {"too long: refused unless truncation_strategy says it", "过长：除非 truncation_strategy 另有说明，否则拒绝"},
          {"the newline after an answer is learned, as the template writes it", "答案后的换行按模板计入学习"},
          {"the loss is divided by the tokens of all ranks", "损失除以所有进程的词元数"},
          {"weights decay, embeddings and LoRA's matrices too, norms and biases not; unset 0.1",
           "权重衰减：包括嵌入和 LoRA 矩阵，不含归一化和偏置；未给出时为 0.1"}};
  }
}

}  // namespace sealift::trainer
