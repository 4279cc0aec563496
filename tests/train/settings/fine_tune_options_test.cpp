// SPDX-License-Identifier: Apache-2.0
// A fine-tuning job's settings: their layers, ms-swift's files and words taken over, and what is refused by name.
// The args.json here is one of ms-swift 4 with what its other features leave in it.
// Each refusal has a job with one fault.
#include "trainer/settings/fine_tune_options.hpp"

#include "tests/support/temp_dir.hpp"
#include "trainer/settings/not_here.hpp"
#include "trainer/settings/swift_names.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <unistd.h>

using namespace sealift::trainer;

namespace {

/// A file that is removed after the test.
struct TemporaryFile {
  std::string path;
  TemporaryFile(const std::string& ending, const std::string& text)
      : path(std::filesystem::temp_directory_path() / ("sealift_job_" + std::to_string(getpid()) + ending)) {
    std::ofstream(path) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

const Texts kJob = {{"model", "m"}, {"dataset", "d"}};

FineTuneOptions read(Texts flags, const std::string& file = "", const std::string& preset = "", Task task = Task::Sft) {
  flags.insert(kJob.begin(), kJob.end());
  return read_fine_tune_options(task, {.flags = std::move(flags), .config_file = file, .preset = preset});
}

FineTuneOptions read_file(const std::string& ending, const std::string& text) {
  const TemporaryFile file(ending, text);
  return read({}, file.path);
}

constexpr const char* kArgs = R"({
 "model": "/models/Qwen2.5-7B-Instruct", "model_type": "qwen2_5", "train_type": "lora", "torch_dtype": "bfloat16",
 "dataset": ["/data/a.tokens"], "val_dataset": [], "split_dataset_ratio": 0.0, "max_length": 2048, "seed": 42,
 "lora_rank": 16, "lora_alpha": 64, "lora_dropout": 0.0, "target_modules": ["q_proj", "v_proj"], "lora_bias": "none",
 "use_rslora": true, "use_dora": false, "lorap_lr_ratio": null, "init_weights": "true", "modules_to_save": [],
 "per_device_train_batch_size": 2, "gradient_accumulation_steps": 8, "learning_rate": 0.0002, "num_train_epochs": 2.0,
 "max_steps": -1, "lr_scheduler_type": "cosine", "lr_scheduler_kwargs": null, "warmup_ratio": 0.05, "warmup_steps": 0,
 "weight_decay": 0.1, "adam_beta1": 0.9, "adam_beta2": 0.95, "adam_epsilon": 1e-08, "max_grad_norm": 1.0,
 "bf16": true, "fp16": false, "gradient_checkpointing": true, "save_steps": 100, "save_total_limit": 2,
 "eval_strategy": "no", "eval_steps": 100.0, "logging_steps": 5, "output_dir": "/out/v0", "report_to": ["tensorboard"],
 "dataloader_num_workers": 4, "deepspeed": null, "fsdp": [], "fsdp_config": {"min_num_params": 0}, "optim": "adamw_torch_fused",
 "use_galore": false, "galore_rank": 128, "vllm_gpu_memory_utilization": 0.9, "accelerator_config": {"split_batches": false},
 "quant_method": null, "quant_bits": null, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true,
 "resume_from_checkpoint": null, "packing": true, "neftune_noise_alpha": null, "tuner_backend": "peft"})";

}  // namespace

TEST_CASE("an args.json of ms-swift says the same job here, and what it cannot change is listed") {
  const TemporaryFile file(".json", kArgs);
  const auto options = read_fine_tune_options(Task::Sft, {.flags = {}, .config_file = file.path, .preset = ""});
  CHECK(options.model == "/models/Qwen2.5-7B-Instruct");
  CHECK(options.dataset == std::vector<std::string>{"/data/a.tokens"});
  CHECK(options.val_dataset.empty());
  CHECK(options.tuner_type == "lora");
  CHECK(options.precision == "bf16");
  CHECK(options.lora_rank == 16);
  CHECK(options.lora_alpha == 64);
  CHECK(options.lora_dropout == 0);
  CHECK(options.target_modules == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(options.use_rslora);
  CHECK_FALSE(options.lorap_lr_ratio);
  CHECK(options.micro_batches(4) == 8);
  CHECK(options.peak_rate() == 2e-4);
  CHECK(options.num_train_epochs == 2);
  CHECK(options.max_steps == 0);
  CHECK(options.warmup_ratio == 0.05);
  CHECK(options.gradient_checkpointing);
  CHECK(options.save_total_limit == 2);
  CHECK(options.out == "/out/v0");
  CHECK(options.packing);
  CHECK(options.resume_from_checkpoint == "auto");
  const auto ignored = [&](const char* key) {
    return std::find(options.ignored.begin(), options.ignored.end(), key) != options.ignored.end();
  };
  CHECK(ignored("report_to"));
  CHECK(ignored("dataloader_num_workers"));
  CHECK(ignored("vllm_gpu_memory_utilization"));
  CHECK(ignored("galore_rank"));
  CHECK_FALSE(ignored("learning_rate"));
}

TEST_CASE("ms-swift's YAML is read: values, lists in both ways, comments and quotes") {
  const auto options = read_file(".yaml",
                                 "# Model args\n"
                                 "train_type: full\n"
                                 "torch_dtype: 'float32'  # the numbers of a CPU\n"
                                 "target_modules: [q_proj, \"v_proj\"]\n"
                                 "val_dataset:\n"
                                 "  - /data/one.tokens\n"
                                 "  - /data/two.tokens\n"
                                 "\n"
                                 "gradient_checkpointing: True\n"
                                 "learning_rate: 1e-5\n"
                                 "deepspeed: null\n"
                                 "report_to: none\n");
  CHECK(options.tuner_type == "none");
  CHECK(options.precision == "fp32");
  CHECK(options.target_modules == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(options.val_dataset == std::vector<std::string>{"/data/one.tokens", "/data/two.tokens"});
  CHECK(options.gradient_checkpointing);
  CHECK(options.peak_rate() == 1e-5);
  CHECK(options.eval_strategy == "steps");
  CHECK_THROWS_WITH(read_file(".yaml", "a: 1\n  b: 2\n"), doctest::Contains("line 2: YAML is not acceptable"));
  CHECK_THROWS_WITH(read_file(".yaml", "model: {a: 1}\n"), doctest::Contains("line 1: model is more than a value"));
  CHECK_THROWS_WITH(read_file(".yaml", "val_dataset:\n  - [a]\n"), doctest::Contains("more than a list of values"));
  CHECK_THROWS_WITH(read_file(".yaml", "seed: 1\nseed: 2\n"), doctest::Contains("line 2: "));
  CHECK_THROWS_WITH(read_file(".yaml", "seed: 1\nseed: 2\n"), doctest::Contains("a key stands twice: seed"));
  CHECK_THROWS_WITH(read_file(".yaml", "target_modules: [a,\n"), doctest::Contains("YAML is not acceptable"));
  CHECK_THROWS_WITH(read_file(".yaml", "- seed\n"), doctest::Contains("line 1: it is no 'key: value'"));
  CHECK_THROWS_WITH(read_file(".yaml", "seed: &a 1\ndata_seed: *a\n"),
                    doctest::Contains("data_seed is more than a value"));
  CHECK(read_file(".yaml", "system: \"Be \\\n  brief.\"\n").system == "Be brief.");
  CHECK(read_file(".yaml", "system: >-\n  Be\n  brief.\n").system == "Be brief.");
  CHECK(read_file(".yaml", "system: 'no'\n").system == "no");  // in quotes it is a text
}

TEST_CASE("a flag counts over the environment, that over the file, that over the preset, that over the default") {
  const TemporaryFile file(".toml", "lora_rank = 4\nlora_alpha = 5\nseed = 6\n");
  const TemporaryFile preset("_preset.toml", "lora_rank = 14\nlora_alpha = 15\nseed = 16\ndata_seed = 17\n");
  setenv("SEALIFT_TRAIN_LORA_ALPHA", "25", 1);
  setenv("SEALIFT_TRAIN_LORA_RANK", "24", 1);
  const auto options = read({{"lora_rank", "34"}}, file.path, preset.path);
  unsetenv("SEALIFT_TRAIN_LORA_ALPHA");
  unsetenv("SEALIFT_TRAIN_LORA_RANK");
  CHECK(options.lora_rank == 34);
  CHECK(options.lora_alpha == 25);
  CHECK(options.seed == 6);
  CHECK(options.data_seed == 17);
  CHECK(options.lora_dropout == 0.05);
}

TEST_CASE("a number in a file is the number of the flag to its last digit, and so is the one in a checkpoint") {
  constexpr double kRate = 1.2345678901234567e-05;
  CHECK(read_file(".toml", "learning_rate = 1.2345678901234567e-05\n").learning_rate == kRate);
  CHECK(read({{"learning_rate", "1.2345678901234567e-05"}}).learning_rate == kRate);
  CHECK(comparable(read({{"learning_rate", "1.2345678e-05"}})) !=
        comparable(read({{"learning_rate", "1.2345679e-05"}})));
  CHECK(comparable(read({{"weight_decay", "0.10000001"}})) != comparable(read({{"weight_decay", "0.1"}})));
  const auto texts = comparable(read({{"adam_epsilon", "1e-8"}, {"beta", "0.30000000000000004"}}));
  CHECK(texts.at("adam_epsilon") == "1e-08");  // as earlier programs wrote it into their checkpoints
  CHECK(texts.at("adam_beta2") == "0.95");
  CHECK(texts.at("beta") == "0.30000000000000004");
  CHECK(texts.at("rpo_alpha").empty());
}

TEST_CASE("every preset that is installed can be read, and sets what its name says") {
  setenv("SEALIFT_TRAIN_PRESETS", SEALIFT_PRESETS, 1);
  const auto fsdp_lora = read({}, "", "fsdp_lora"), fsdp_qlora = read({}, "", "fsdp_qlora");
  const auto ddp_full = read({}, "", "ddp_full"), hsdp_full = read({{"shard_size", "2"}}, "", "hsdp_full");
  CHECK(fsdp_lora.parallel_method == "fsdp");
  CHECK(fsdp_lora.tuner_type == "lora");
  CHECK(fsdp_qlora.parallel_method == "fsdp");
  CHECK(fsdp_qlora.tuner_type == "qlora");
  CHECK(ddp_full.parallel_method == "ddp");
  CHECK(ddp_full.tuner_type == "none");
  CHECK(hsdp_full.parallel_method == "hsdp");
  CHECK(hsdp_full.tuner_type == "none");
  CHECK(hsdp_full.shard_size == 2);
  CHECK_THROWS_WITH(read({}, "", "no_such"),
                    doctest::Contains("there are: ddp_full, fsdp_lora, fsdp_qlora, hsdp_full"));
  CHECK_THROWS_WITH(read({}, "", "../presets/ddp_full"), doctest::Contains("there is no preset"));
  unsetenv("SEALIFT_TRAIN_PRESETS");
}

TEST_CASE("the args.json that ms-swift 4.6 writes is read whole") {
  const auto options =
      read_fine_tune_options(Task::Sft, {.flags = {}, .config_file = SEALIFT_SWIFT_ARGS, .preset = ""});
  CHECK(options.tuner_type == "none");
  CHECK(options.precision == "fp32");
  CHECK(options.max_steps == 6);
  CHECK(options.peak_rate() == 5e-3);
  CHECK(options.lr_scheduler_type == "constant");
  CHECK(options.weight_decay == 0);
}

TEST_CASE("words of ms-swift that are two here, and two that are one") {
  CHECK(read({{"train_type", "lora"}, {"quant_bits", "4"}}).tuner_type == "qlora");
  CHECK(read({{"tuner", "full"}}).tuner_type == "none");
  CHECK(read({{"bf16", "true"}, {"torch_dtype", "bfloat16"}}).precision == "bf16");
  CHECK(read({{"fp16", "true"}, {"bf16", "false"}}).precision == "fp16");
  CHECK(read({{"torch_dtype", "float32"}}).precision == "fp32");
  CHECK(read({{"torch_dtype", "float32"}, {"fp16", "true"}, {"bf16", "false"}}).precision == "fp16");  // swift adds it
  CHECK(read({{"torch_dtype", "float32"}, {"bf16", "true"}}).precision == "bf16");
  CHECK(read({{"torch_dtype", "float32"}, {"precision", "bf16"}}).precision == "bf16");
  CHECK_THROWS_WITH(read({{"precision", "fp32"}, {"bf16", "true"}}),
                    doctest::Contains("precision is fp32, but another key means bf16"));
  CHECK(read({{"warmup_steps", "0.1"}}).warmup_ratio == 0.1);
  CHECK(read({{"data", "d"}}).dataset == std::vector<std::string>{"d"});
  CHECK_THROWS_WITH(read({{"fp16", "true"}, {"torch_dtype", "bfloat16"}}),
                    doctest::Contains("give one of torch_dtype"));
  CHECK_THROWS_WITH(read({{"data", "other"}}), doctest::Contains("data is another name of dataset"));
  CHECK_THROWS_WITH(read({{"quant_bits", "8"}}), doctest::Contains("quant_bits is '8'"));
  CHECK_THROWS_WITH(read({{"quant_bits", "4"}, {"tuner", "none"}}), doctest::Contains("is not trained"));
  CHECK_THROWS_WITH(read({{"torch_dtype", "float8"}}), doctest::Contains("use float32, bfloat16 or float16"));
}

TEST_CASE("how JSON lines become tokens is said in ms-swift's words") {
  const auto options = read_file(".yaml", "truncation_strategy: delete\nloss_scale: last_round\nsystem: 'Be brief.'\n");
  CHECK(options.truncation_strategy == "delete");
  CHECK(options.loss_scale == "last_round");
  CHECK(options.system == "Be brief.");
  CHECK(options.use_chat_template);
  CHECK_THROWS_WITH(read({{"truncation_strategy", "middle"}}), doctest::Contains("truncation_strategy is 'middle'"));
  CHECK_THROWS_WITH(read({{"loss_scale", "react"}}), doctest::Contains("use one of default, last_round, all"));
}

TEST_CASE("what could change the numbers and is not there is refused by name with the remedy") {
  CHECK_THROWS_WITH(read_file(".json", R"({"deepspeed": "zero3"})"),
                    doctest::Contains("deepspeed is 'zero3'; here it can only be nothing: ranks shard by themselves"));
  CHECK_THROWS_WITH(read({{"neftune_noise_alpha", "5"}}),
                    doctest::Contains("the command line: neftune_noise_alpha is '5'"));
  CHECK_THROWS_WITH(read({{"train_type", "adalora"}}), doctest::Contains("use one of none, lora, qlora"));
  CHECK_THROWS_WITH(read({{"use_galore", "true"}}), doctest::Contains("use_galore"));
  CHECK_THROWS_WITH(read({{"lora_bias", "all"}}), doctest::Contains("biases stay frozen"));
  CHECK_THROWS_WITH(read({{"quant_method", "hqq"}}), doctest::Contains("NF4 only"));
  CHECK_THROWS_WITH(read({{"optim", "adafactor"}}), doctest::Contains("the optimizer is AdamW"));
  CHECK_THROWS_WITH(read({{"lora_rang", "8"}}),
                    doctest::Contains("unknown key 'lora_rang', did you mean lora_rank; sealift-train sft --help"));
  CHECK_THROWS_WITH(read_file(".json", R"({"a_new_key": 1})"), doctest::Contains("unknown key 'a_new_key'"));
  CHECK_THROWS_WITH(read_file(".json", "[1]"), doctest::Contains("is no JSON object"));
  CHECK_THROWS_WITH(read_file(".json", "{"), doctest::Contains("parse error"));
  CHECK_THROWS_WITH(read({}, "/no/such/args.json"), doctest::Contains("cannot read /no/such/args.json"));
}

TEST_CASE("a job that cannot be is refused before any rank is started") {
  CHECK_THROWS_WITH(read_fine_tune_options(Task::Sft, {}), doctest::Contains("there is no model"));
  CHECK_THROWS_WITH(read_fine_tune_options(Task::Sft, {.flags = {{"model", "m"}}, .config_file = "", .preset = ""}),
                    doctest::Contains("there are no data"));
  CHECK_THROWS_WITH(read({{"lora_rank", "0"}}), doctest::Contains("lora_rank is 0; expected at least 1"));
  CHECK_THROWS_WITH(read({{"eval_strategy", "steps"}}), doctest::Contains("give val_dataset"));
  CHECK_THROWS_WITH(read({{"early_stop_interval", "2"}}), doctest::Contains("need evaluations"));
  CHECK_THROWS_WITH(read({{"load_best_model_at_end", "true"}}), doctest::Contains("need evaluations"));
  CHECK_THROWS_WITH(read({{"merge_lora", "true"}, {"tuner", "none"}}), doctest::Contains("there is no adapter"));
  CHECK_THROWS_WITH(read({{"lr_scheduler_type", "greedy"}}), doctest::Contains("lr_scheduler_type is 'greedy'"));
  CHECK_THROWS_WITH(read({{"precision", "fp8"}}), doctest::Contains("use one of fp32, bf16, fp16"));
  CHECK_THROWS_WITH(read({{"lora_dropout", "1"}}), doctest::Contains("lora_dropout"));
  CHECK_THROWS_WITH(read({{"model", "o/model"}, {"output_dir", "o"}}), doctest::Contains("which this job writes anew"));
  CHECK(read({{"model", "o/model"}, {"output_dir", "p"}}).model == "o/model");
  CHECK_THROWS_WITH(read({{"device", "tpu"}}), doctest::Contains("use auto, cpu or cuda"));
  CHECK_THROWS_WITH(read({{"num_train_epochs", "0"}}), doctest::Contains("num_train_epochs is 0"));
  CHECK_THROWS_WITH(read({{"learning_rate", "nan"}}), doctest::Contains("learning_rate is 'nan'"));
}

TEST_CASE("each verb has its own preferences, references and adapters, and refuses what belongs to another") {
  const auto of = [](Task task, Texts flags) { return read(std::move(flags), "", "", task); };
  CHECK(of(Task::Kto, {}).rlhf_type == "kto");
  CHECK(of(Task::Reward, {{"rlhf_type", "rm"}}).rlhf_type == "rm");
  CHECK(of(Task::Kto, {{"loss_type", "apo_zero_unpaired"}}).loss_type == "apo_zero_unpaired");
  CHECK_THROWS_WITH(of(Task::Dpo, {{"rlhf_type", "kto"}}), doctest::Contains("use sealift-train kto"));
  CHECK_THROWS_WITH(of(Task::Dpo, {{"rlhf_type", "rm"}}), doctest::Contains("use sealift-train reward"));
  CHECK_THROWS_WITH(of(Task::Kto, {{"rlhf_type", "simpo"}}), doctest::Contains("rlhf_type is 'simpo'"));
  CHECK_THROWS_WITH(of(Task::Kto, {{"loss_type", "ipo"}}), doctest::Contains("loss_type is 'ipo'"));
  CHECK_THROWS_WITH(of(Task::Reward, {{"sample_prompts", "1"}}), doctest::Contains("a reward model writes no text"));
  CHECK_THROWS_WITH(read({{"ref_model", "m"}}), doctest::Contains("sealift-train sft, which has no reference"));
  CHECK(of(Task::Dpo, {{"adapters", "a"}, {"ref_adapters", "a"}}).ref_adapters == std::vector<std::string>{"a"});
  CHECK_THROWS_WITH(of(Task::Dpo, {{"adapters", "a"}, {"ref_adapters", "b"}}),
                    doctest::Contains("give that folder as ref_model"));
  CHECK_THROWS_WITH(read({{"adapters", "a,b"}}), doctest::Contains("adapters names several folders"));
  CHECK_THROWS_WITH(read({{"adapters", "a"}, {"tuner", "none"}}), doctest::Contains("adapters with tuner_type none"));
  CHECK_THROWS_WITH(read({{"modules_to_save", "a"}, {"tuner", "none"}}), doctest::Contains("there is no adapter"));
  CHECK(read({{"expert_parallel_size", "2"}}).expert_model_parallel_size == 2);
  CHECK_THROWS_WITH(read({{"expert_parallel_size", "0"}}), doctest::Contains("expected at least 1"));
  CHECK_THROWS_WITH(read({{"tensor_model_parallel_size", "2"}}), doctest::Contains("use fsdp"));
}

TEST_CASE("a step has at least sixteen rows unless the job says how many") {
  CHECK(read({}).micro_batches(1) == 16);
  CHECK(read({}).micro_batches(2) == 8);
  CHECK(read({{"per_device_train_batch_size", "3"}}).micro_batches(2) == 3);
  CHECK(read({{"per_device_train_batch_size", "32"}}).micro_batches(2) == 1);
  CHECK(read({{"gradient_accumulation_steps", "5"}}).micro_batches(2) == 5);
}

TEST_CASE("only what changes the numbers tells two jobs apart") {
  CHECK(comparable(read({{"parallel_method", "fsdp"}, {"output_dir", "x"}, {"save_steps", "3"}})) ==
        comparable(read({})));
  CHECK(comparable(read({{"expert_parallel_size", "2"}, {"sample_prompts", "3"}})) == comparable(read({})));
  CHECK(comparable(read({{"lora_rank", "4"}})) != comparable(read({})));
  CHECK(comparable(read({{"learning_rate", "0.5"}})) != comparable(read({})));
}

TEST_CASE("all keys of a job that cannot be taken are named in one message, with what was meant") {
  std::string said;
  try {
    read({{"lora_rang", "3"}, {"deepspeed", "zero3"}, {"trane_type", "lora"}, {"use_galore", "true"}});
  } catch (const std::invalid_argument& error) {
    said = error.what();
  }
  for (const auto* part : {"4 keys of this job cannot be taken:", "unknown key 'lora_rang', did you mean lora_rank;",
                           "unknown key 'trane_type', did you mean train_type (here tuner_type);",
                           "deepspeed is 'zero3'", "use_galore is 'true'"}) {
    CHECK_MESSAGE(said.find(part) != std::string::npos, part, " in ", said);
  }
}

TEST_CASE("ids of hubs and rows of a file are refused for what they are, and what is there is taken") {
  const auto said = [](const Texts& texts) {
    try {
      refuse_what_is_not_here(read(texts));
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, " in ", text);
  };
  has(said({{"model", "Qwen/Qwen2.5-7B-Instruct"}}), "model is 'Qwen/Qwen2.5-7B-Instruct', an id of a hub");
  has(said({{"dataset", "AI-ModelScope/alpaca-gpt4-data-zh#500"}}), "an id of a hub and no file that is here");
  has(said({{"dataset", "HF::tatsu-lab/alpaca:default"}}), "[[data]]");
  has(said({{"val_dataset", "data/chats.jsonl#20"}}), "ms-swift takes 20 rows of data/chats.jsonl at random");
  has(said({{"val_dataset", "chats.jsonl#20"}}), "shuf -n 20 --random-source=chats.jsonl chats.jsonl > part.jsonl");
  CHECK(said({{"model", "/models/Qwen2.5-7B"}, {"dataset", "data/chats.jsonl"}}).empty());
  CHECK(said({{"model", "./Qwen/Qwen2.5-7B"}}).empty());
  CHECK(said({{"dataset", "data/train.csv,data/more.jsonl.gz,data/last.parquet"}}).empty());
  CHECK(said({{"dataset", "team/chats"}, {"dataset_dir", "data"}}).empty());
  const sealift::test::TempDir folder;
  const auto there = (folder / "chats.jsonl#20").string();
  sealift::test::write_file(there, "");
  CHECK(said({{"dataset", there}}).empty());
}

TEST_CASE("swift rlhf is the verb that its rlhf_type says") {
  const auto task = [](const std::string& type) {
    return task_of_rlhf({.flags = {{"rlhf_type", type}}, .config_file = "", .preset = ""});
  };
  CHECK(task("simpo") == Task::Dpo);
  CHECK(task("kto") == Task::Kto);
  CHECK(task("rm") == Task::Reward);
  CHECK(task_of_rlhf({.flags = {}, .config_file = "", .preset = ""}) == Task::Dpo);
  CHECK_THROWS_WITH(task("grpo"), doctest::Contains("what generates answers while it trains"));
}
