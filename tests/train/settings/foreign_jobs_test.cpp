// SPDX-License-Identifier: Apache-2.0
// Jobs of LLaMA-Factory, axolotl and TRL: the same job here, each key a setting, ignored with a reason or refused.
// The files are the projects' own examples, shortened, with paths of a site.
// Each row of each table is met once: no row may name a setting that there is not.
#include "trainer/settings/fates.hpp"
#include "trainer/settings/fine_tune_options.hpp"
#include "trainer/settings/settings_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

using namespace sealift::trainer;

namespace {

struct JobFile {
  std::string path = std::filesystem::temp_directory_path() / ("sealift_foreign_" + std::to_string(getpid()) + ".yaml");
  explicit JobFile(const std::string& text) { std::ofstream(path) << text; }
  ~JobFile() { std::filesystem::remove(path); }
};

FineTuneOptions read_job(const std::string& text, Task task = Task::Sft, Texts flags = {}) {
  const JobFile file(text);
  return read_fine_tune_options(task, {.flags = std::move(flags), .config_file = file.path, .preset = ""});
}

bool ignores(const FineTuneOptions& options, const std::string& key) {
  return std::find(options.ignored.begin(), options.ignored.end(), key) != options.ignored.end();
}

const std::string kLlamaFactory = R"(### model
model_name_or_path: /models/Qwen2.5-7B
trust_remote_code: true
### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
### dataset
dataset: identity,alpaca_en_demo
template: qwen
cutoff_len: 2048
overwrite_cache: true
preprocessing_num_workers: 16
### output
output_dir: /out/lora
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
)";

const std::string kAxolotl = R"(base_model: /models/Llama-3.2-1B
load_in_8bit: false
load_in_4bit: true
datasets:
  - path: /data/chats.jsonl
    type: chat_template
    field_messages: messages
    message_field_training: train
    roles_to_train: ["assistant"]
  - path: /data/more.jsonl
    type: chat_template
val_set_size: 0.0
output_dir: /out/qlora
adapter: qlora
lora_r: 16
lora_alpha: 32
lora_dropout: 0.05
lora_target_linear: true
sequence_len: 2048
sample_packing: true
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_torch_fused
lr_scheduler: cosine
learning_rate: 0.0002
bf16: auto
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
flash_attention: true
warmup_ratio: 0.1
weight_decay: 0.0
special_tokens:
  pad_token: <|end_of_text|>
wandb_project:
)";

const std::string kTrl = R"(model_name_or_path: /models/Qwen3-0.6B
dataset_name: /data/chats.jsonl
learning_rate: 2.0e-5
assistant_only_loss: true
use_peft: true
lora_r: 32
lora_target_modules: [q_proj, v_proj]
max_steps: 10
output_dir: /out/trl
)";

}  // namespace

TEST_CASE("a job of LLaMA-Factory is the same job here, with its defaults") {
  const auto options = read_job(kLlamaFactory);
  CHECK(options.model == "/models/Qwen2.5-7B");
  CHECK(options.dataset == std::vector<std::string>{"identity", "alpaca_en_demo"});
  CHECK(options.dataset_dir == "data");
  CHECK(options.max_samples == 0);
  CHECK(read_job(kLlamaFactory + "max_samples: 1000\n").max_samples == 1000);
  CHECK(options.data_format == "llama-factory");
  CHECK(options.tuner_type == "lora");
  CHECK(options.target_modules == std::vector<std::string>{"all-linear"});
  CHECK(options.lora_alpha == 16);  // twice the rank, which is not said
  CHECK(options.lora_dropout == 0);
  CHECK(options.max_length == 2048);
  CHECK(options.truncation_strategy == "pairs");
  CHECK(options.weight_decay == 0);
  CHECK(options.adam_beta2 == 0.999);
  CHECK(options.precision == "bf16");
  CHECK(options.gradient_checkpointing);
  CHECK(options.lr_scheduler_type == "cosine");
  CHECK(options.warmup_ratio == 0.1);
  for (const char* key :
       {"template", "plot_loss", "overwrite_cache", "preprocessing_num_workers", "trust_remote_code"}) {
    CHECK_MESSAGE(ignores(options, key), key);
  }
  CHECK(read_job(kLlamaFactory, Task::Sft, {{"lora_alpha", "5"}}).lora_alpha == 5);
  CHECK(read_job(kLlamaFactory + "mask_history: true\n").loss_scale == "last_round");
  CHECK(read_job(kLlamaFactory + "disable_gradient_checkpointing: true\n").gradient_checkpointing == false);
  CHECK(read_job(kLlamaFactory + "quantization_bit: 4\n").tuner_type == "qlora");
}

TEST_CASE("a job of axolotl is the same job here, with its defaults") {
  const auto options = read_job(kAxolotl);
  CHECK(options.model == "/models/Llama-3.2-1B");
  CHECK(options.dataset == std::vector<std::string>{"/data/chats.jsonl", "/data/more.jsonl"});
  CHECK(options.training_key == "train");
  CHECK(options.data_format == "axolotl");
  CHECK(options.tuner_type == "qlora");
  CHECK(options.lora_rank == 16);
  CHECK(options.packing);
  CHECK(options.truncation_strategy == "delete");
  CHECK(options.max_length == 2048);
  CHECK(options.per_device_train_batch_size == 2);
  CHECK(options.precision == "bf16");
  CHECK(options.num_train_epochs == 1);
  CHECK(options.save_strategy == "epoch");
  CHECK(options.save_total_limit == 4);
  for (const char* key : {"flash_attention", "special_tokens.pad_token", "gradient_checkpointing_kwargs"}) {
    CHECK_MESSAGE(ignores(options, key), key);
  }
  CHECK(read_job(kAxolotl + "save_steps: 7\n").save_strategy == "steps");
}

TEST_CASE("a job of TRL is the same job here, with its defaults") {
  const auto options = read_job(kTrl);
  CHECK(options.model == "/models/Qwen3-0.6B");
  CHECK(options.dataset == std::vector<std::string>{"/data/chats.jsonl"});
  CHECK(options.tuner_type == "lora");
  CHECK(options.lora_rank == 32);
  CHECK(options.lora_alpha == 32);
  CHECK(options.loss_scale == "default");
  CHECK(options.max_length == 1024);
  CHECK(options.truncation_strategy == "right");
  CHECK(options.precision == "bf16");
  CHECK(options.per_device_train_batch_size == 8);
  CHECK(options.weight_decay == 0);
  CHECK(read_job(kTrl + "bf16: false\n").precision == "fp32");
  CHECK(read_job(kTrl + "fp16: true\nbf16: false\n").precision == "fp16");
  CHECK(read_job("model_name_or_path: m\ndataset_name: d\nuse_peft: false\n", Task::Dpo).peak_rate() == 1e-6);
}

TEST_CASE("rows that a job holds out of its data are its evaluation data, in each project's words") {
  const auto factory = read_job(kLlamaFactory + "val_size: 0.1\n");
  CHECK(factory.split_dataset_ratio == 0.1);
  CHECK(factory.val_dataset == factory.dataset);
  CHECK(factory.eval_strategy == "steps");
  CHECK(read_job(kTrl + "test_split_size: 0.25\n").split_dataset_ratio == 0.25);
  CHECK(read_job("model: m\ndataset: d\nsplit_dataset_ratio: 0.01\nattn_impl: sdpa\n").val_dataset.size() == 1);
  const std::string axolotl = "base_model: m\nlearning_rate: 1e-4\ndatasets: [{path: a, type: chat_template}]\n";
  CHECK(read_job(axolotl + "val_set_size: 20\nevals_per_epoch: 1\n").eval_strategy == "epoch");
  CHECK(read_job(axolotl + "val_set_size: 0\nevals_per_epoch: 1\n").eval_strategy == "no");
  CHECK(read_job(kLlamaFactory).val_dataset.empty());
  for (const char* wrong : {"val_size: 2.5", "val_size: -1", "val_size: nan"}) {
    CHECK_THROWS_WITH(read_job(kLlamaFactory + wrong + "\n"), doctest::Contains("split_dataset_ratio"));
  }
  CHECK_THROWS_WITH(read_job(kLlamaFactory + "val_size: 0.1\neval_dataset: other\n"),
                    doctest::Contains("leave one out"));
}

TEST_CASE("a template that a job names is ignored alike in each project, and a template that it writes is refused") {
  const auto axolotl = read_job(kAxolotl + "chat_template: chatml\n");
  CHECK(ignores(axolotl, "chat_template"));
  CHECK(ignores(read_job(kLlamaFactory), "template"));
  CHECK(ignores(read_job("model: m\ndataset: d\ntemplate: qwen3\nattn_impl: sdpa\n"), "template"));
  CHECK_THROWS_WITH(read_job(kTrl + "chat_template_path: x\n"), doctest::Contains("chat_template.jinja"));
}

TEST_CASE("thoughts and prompts are those of the job's project") {
  CHECK(!read_job(kLlamaFactory).add_non_thinking_prefix);  // its template qwen does not think
  auto thinking = kLlamaFactory;
  thinking.replace(thinking.find("template: qwen"), 14, "template: qwen3");
  CHECK(read_job(thinking).add_non_thinking_prefix);
  CHECK(read_job(kTrl).add_non_thinking_prefix);
  CHECK(!read_job("model: m\ndataset: d\nadd_non_thinking_prefix: false\nattn_impl: sdpa\n").add_non_thinking_prefix);
  CHECK(read_job("model: m\ndataset: d\nloss_scale: last_round+ignore_empty_think\nattn_impl: sdpa\n").loss_scale ==
        "last_round");
  CHECK(read_job("base_model: m\nlearning_rate: 1e-4\ndatasets: [{path: a, type: alpaca}]\n").alpaca_prompts);
  CHECK(!read_job(kAxolotl).alpaca_prompts);
}

TEST_CASE("what a job leaves to its project and we cannot choose is asked for") {
  CHECK_THROWS_WITH(read_job("model_name_or_path: m\ndataset_name: d\n"),
                    doctest::Contains("TRL learns every token of chats"));
  CHECK(read_job("model_name_or_path: m\ndataset_name: d\n", Task::Sft, {{"loss_scale", "all"}}).loss_scale == "all");
  CHECK_THROWS_WITH(read_job("model_name_or_path: m\ndataset_name: d\nuse_peft: true\n", Task::Dpo),
                    doctest::Contains("the adapter has no targets"));
  CHECK_THROWS_WITH(read_job("base_model: m\nmicro_batch_size: 1\n"), doctest::Contains("there is no learning_rate"));
  CHECK_THROWS_WITH(read_job("base_model: m\nmicro_batch_size: 1\nlearning_rate: 1e-4\nadapter: lora\n"),
                    doctest::Contains("there is no lora_r"));
}

TEST_CASE("a key of another project is refused with the remedy where it asks for what there is not") {
  for (const auto& [line, reason] : std::vector<std::pair<std::string, std::string>>{
           {"stage: ppo", "PPO is not trained here"},
           {"stage: dpo", "use sealift-train dpo"},
           {"finetuning_type: freeze", "use lora or full"},
           {"quantization_bit: 8", "4 bits or not at all"},
           {"val_size: 1", "split_dataset_ratio is 1"},
           {"pure_bf16: true", "set bf16"},
           {"enable_thinking: false", "--template-args"},
           {"use_badam: true", "leave it out"},
           {"deepspeed: examples/deepspeed/ds_z3_config.json", "parallel_method = fsdp"},
           {"cutof_len: 3", "unknown key 'cutof_len'"}}) {
    CAPTURE(line);
    auto job = kLlamaFactory;
    const auto key = line.substr(0, line.find(':'));
    if (const auto at = job.find("\n" + key + ":"); at != std::string::npos) job.erase(at, job.find('\n', at + 1) - at);
    CHECK_THROWS_WITH(read_job(job + line + "\n"), doctest::Contains(reason.c_str()));
  }
  for (const auto& [line, reason] :
       std::vector<std::pair<std::string, std::string>>{{"rl: grpo", "GRPO"},
                                                        {"chat_template_jinja: x", "chat_template.jinja"},
                                                        {"cosine_min_lr_ratio: 0.1", "cosine_with_min_lr"},
                                                        {"unfrozen_parameters: [a]", "use LoRA"},
                                                        {"saves_per_epoch: 4", "set save_steps"},
                                                        {"batch_size: 4", "gradient_accumulation_steps"},
                                                        {"no_such_key: 1", "unknown key 'no_such_key'"}}) {
    CAPTURE(line);
    CHECK_THROWS_WITH(read_job(kAxolotl + line + "\n"), doctest::Contains(reason.c_str()));
  }
  CHECK_THROWS_WITH(read_job("base_model: m\ndatasets:\n  - path: a\n    type: sharegpt\n"),
                    doctest::Contains("datasets.00.type is 'sharegpt'"));
  CHECK_THROWS_WITH(read_job(kTrl + "loss_type: dft\n"),
                    doctest::Contains("loss_type is 'dft' with sealift-train sft"));
  CHECK(read_job(kTrl + "loss_type: chunked_nll\n").loss_type.empty());
  CHECK_THROWS_WITH(read_job(kTrl + "eos_token: x\n"), doctest::Contains("tokenizer_config.json"));
}

TEST_CASE("every key of the tables names settings that there are, and says why or what to do") {
  std::set<std::string> known = {"quant_bits", "torch_dtype"};
  for (const auto& setting : fine_tune_settings()) known.insert(setting.name);
  for (const auto project : {Project::LlamaFactory, Project::Axolotl, Project::Trl}) {
    for (const auto& row : foreign_keys(project)) {
      CAPTURE(to_string(project));
      CAPTURE(row.key);
      if (*row.setting) CHECK(known.contains(row.setting));
      if (!*row.setting) CHECK(*row.remedy);
      for (const auto& [value, actions] : row.values) {
        std::istringstream words{std::string(actions)};
        for (std::string action; std::getline(words, action, ';');) {
          if (!action.starts_with('@')) CHECK_MESSAGE(known.contains(action.substr(0, action.find('='))), action);
        }
      }
    }
    for (const auto task : {Task::Sft, Task::Dpo, Task::Kto, Task::Reward, Task::Pretrain}) {
      for (const auto& [name, text] : foreign_defaults(project, task)) CHECK_MESSAGE(known.contains(name), name);
    }
  }
}

TEST_CASE("each key of a job is told by itself, also where several are refused") {
  const JobFile file("base_model: m\nlora_r: 4\nflash_attention: true\nplugins: [a]\nnobody: 1\nrl: dpo\n");
  const auto texts = read_config(file.path);
  CHECK(project_of(texts) == Project::Axolotl);
  CHECK(task_of(texts) == Task::Dpo);
  std::map<std::string, Fate> fates;
  for (const auto& fate : fates_of(texts, Task::Dpo)) fates[fate.key] = fate;
  CHECK(fates.size() == 6);
  CHECK(fates["lora_r"].words == "lora_rank = 4");
  CHECK(fates["flash_attention"].kind == Fate::Kind::Ignored);
  CHECK(fates["plugins"].kind == Fate::Kind::Refused);
  CHECK(fates["nobody"].kind == Fate::Kind::Refused);
  CHECK(fates["rl"].kind != Fate::Kind::Refused);
}

namespace {

struct PeerKey {
  std::string project, key, text;  ///< text: of its default; empty: there is none, or it is made
};

std::vector<PeerKey> peer_keys() {
  std::ifstream file(SEALIFT_PEER_KEYS);
  std::vector<PeerKey> keys;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    auto text = line.substr(second + 1);
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    keys.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1), text});
  }
  return keys;
}

/// What becomes of one key in a job of its project.
Fate fate_of(const PeerKey& peer, const std::string& text) {
  static const std::map<std::string, std::pair<std::string, std::string>> marks = {
      {"LLaMA-Factory", {"cutoff_len", "64"}},
      {"axolotl", {"base_model", "m"}},
      {"axolotl datasets", {"base_model", "m"}},
      {"TRL", {"model_name_or_path", "m"}},
      {"ms-swift", {"swift_version", "4.6"}}};
  const auto key = (peer.project == "axolotl datasets" ? "datasets.00." : "") + peer.key;
  Texts texts = {marks.at(peer.project)};
  texts[key] = text;
  for (const auto& fate : fates_of(texts, Task::Sft)) {
    if (fate.key == key) return fate;
  }
  return {};
}

}  // namespace

TEST_CASE("every key that the sources of four projects have has a row, and none is unknown") {
  const auto keys = peer_keys();
  CHECK(keys.size() > 1300);
  for (const auto& peer : keys) {
    const auto fate = fate_of(peer, peer.text.empty() ? "x" : peer.text);
    CAPTURE(peer.project);
    CAPTURE(peer.key);
    CHECK_MESSAGE(!fate.words.empty(), "nothing is said of it");
    CHECK_MESSAGE(fate.words.find("nobody knows") == std::string::npos, fate.words);
  }
}

TEST_CASE("a key that a project's own sources give a default is not refused with that") {
  for (const auto& peer : peer_keys()) {
    if (peer.text.empty()) continue;
    const auto fate = fate_of(peer, peer.text);
    CAPTURE(peer.project);
    CAPTURE(peer.key);
    CHECK_MESSAGE(fate.kind != Fate::Kind::Refused, fate.words);
  }
}

TEST_CASE("a job says itself what it trains towards, in each project's words") {
  CHECK(task_of({{"cutoff_len", "64"}, {"stage", "rm"}}) == Task::Reward);
  CHECK(task_of({{"base_model", "m"}, {"rl", "kto"}}) == Task::Kto);
  CHECK(task_of({{"base_model", "m"}, {"datasets.00.type", "completion"}}) == Task::Pretrain);
  CHECK(task_of({{"swift_version", "4.6"}, {"rlhf_type", "dpo"}}) == Task::Dpo);
  CHECK(!task_of({{"model_name_or_path", "m"}}));
}

TEST_CASE(
    "all that is wrong with a job of another project is said at once, each unknown key with the one that was meant") {
  std::string message;
  try {
    read_job(kLlamaFactory + "cutof_len: 3\nmicro_batch_size: 4\nuse_badam: true\nfinetuning_typ: lora\n");
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  for (const auto* part :
       {"4 keys of this job cannot be taken:",
        "unknown key 'cutof_len', did you mean cutoff_len (LLaMA-Factory's, here max_length)",
        "unknown key 'micro_batch_size', a key of another project (axolotl's, here per_device_train_batch_size)",
        "use_badam is 'true'", "did you mean finetuning_type"}) {
    CHECK_MESSAGE(message.find(part) != std::string::npos, part, " in ", message);
  }
}

TEST_CASE("what projects do differently holds in their jobs: warm-up, dropout of a reference's model, precision") {
  CHECK(read_job(kAxolotl).warmup_rule == "axolotl");
  CHECK(read_job(kAxolotl + "warmup_steps: 0\n").warmup_rule == "up");
  CHECK(read_job(kAxolotl, Task::Sft, {{"warmup_ratio", "0"}}).warmup_rule == "up");
  CHECK(read_job("base_model: m\nlearning_rate: 1e-4\ndatasets: [{path: a, type: chat_template}]\nbf16: false\n")
            .precision == "fp32");
  const std::string dpo = "model_name_or_path: m\ndataset_name: d\nuse_peft: true\nlora_target_modules: all-linear\n";
  CHECK(read_job(dpo, Task::Dpo).lora_dropout == 0);
  CHECK(read_job(dpo + "disable_dropout: false\n", Task::Dpo).lora_dropout == 0.05);
}
