# SPDX-License-Identifier: Apache-2.0
# Jobs of LLaMA-Factory, axolotl, TRL and ms-swift through `explain` and through two steps.
#   a job as each project's examples write it, with the data and the model of this test: explained in both languages, run
#   what projects do differently holds in the tokens that were learned: the newline, too long pairs, keys of messages
#   max_samples and FILE#N: the rows that a run takes
# usage: foreign_jobs_test.py SEALIFT_TRAIN [PART...]      with the Python of torch; PYTHONPATH: the peers
import json

from short_runs import (FIRST, MODEL, ONE_STEP, SECOND, TOKENIZER, TWO_ANSWERS, WORK, chat, check, learned, llama_factory_data, made,
                        run, run_parts, trained, write)


def rows_of_a_file():
    data = WORK / "rows.jsonl"
    made.write_lines(data, [chat(("user", str(number), {}), ("assistant", "red", {})) for number in range(9)])
    first, _ = trained("first", "--model", MODEL, "--data", data, "--max_samples", "3", *ONE_STEP)
    whole, _ = trained("whole", "--model", MODEL, "--data", data, *ONE_STEP)
    check(first == whole[:3], "max_samples takes the first rows")
    some, _ = trained("some", "--model", MODEL, "--data", f"{data}#4", "--data_format", "ms-swift", *ONE_STEP)
    check(len({ids for ids, _ in some}) == 4 and all(row in whole for row in some), "FILE#4 takes four rows")
    again, _ = trained("again", "--model", MODEL, "--data", f"{data}#4", "--data_format", "ms-swift", *ONE_STEP)
    check(again == some, "FILE#4 takes the same rows again")
    more, _ = trained("more", "--model", MODEL, "--data", f"{data}#20", "--data_format", "ms-swift", *ONE_STEP)
    check(len(more) == 20 and len({ids for ids, _ in more}) == 9, "FILE#20 of nine rows takes rows again, as ms-swift")
    done = run("sft", "--model", MODEL, "--data", f"{data}#4", expect=2)
    check("shuf" in done.stderr and "data_format: ms-swift" in done.stderr, f"FILE#4 elsewhere: {done.stderr}")


def explained(job, project, *parts, verb=None):
    """Both languages name each part; the whole job can be trained."""
    for language, can in (("en", "can be trained by sealift-train"), ("zh", "可以训练：sealift-train")):
        said = run("explain", job, "--lang", language).stdout
        for part in (project, can, *parts):
            check(part in said, f"explain {job} --lang {language} does not say '{part}':\n{said}")
    return json.loads(run("explain", job, "--json").stdout)


def a_job_of_llama_factory():
    job = write("llama_factory.yaml", f"""### model
model_name_or_path: {MODEL}
trust_remote_code: true
### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
### dataset
dataset: mine
dataset_dir: {llama_factory_data()}
template: qwen
cutoff_len: 12
max_samples: 4
preprocessing_num_workers: 16
dataloader_num_workers: 4
### output
output_dir: {WORK / 'saves'}
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none
### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
""")
    told = explained(job, "LLaMA-Factory", "cutoff_len = 12  ->  max_length = 12", "max_samples = 4", "plot_loss",
                     "lora_alpha = 16", "truncation_strategy = pairs")
    check(told["keys"]["template"]["fate"] == "ignored", told["keys"]["template"])
    sequences, _ = trained("llama-factory", "--config", job)
    check(len(sequences) == 4 and all(len(ids) == 12 for ids, _ in sequences), f"cutoff_len: {sequences}")
    # The answer is short, so that LLaMA-Factory keeps it whole and cuts the question.
    check(learned(sequences) == [["blue<|im_end|>\n"]] * 4, f"learned {learned(sequences)}")


def a_job_of_axolotl():
    data = WORK / "axolotl.jsonl"
    line = chat(("user", "one two", {}), ("assistant", "red", {"train": False}), ("user", "three", {}), ("assistant", "blue", {}))
    long = chat(("user", " ".join(["small"] * 40), {}), ("assistant", "red", {}))
    made.write_lines(data, [line, long, line, line, line])
    job = write("axolotl.yml", f"""base_model: {MODEL}
load_in_8bit: false
load_in_4bit: false
datasets:
  - path: {data}
    type: chat_template
    field_messages: messages
    message_field_training: train
    roles:
      user:
        - user
      assistant:
        - assistant
dataset_prepared_path: last_run_prepared
chat_template: chatml
val_set_size: 0.0
output_dir: {WORK / 'outputs'}
adapter: lora
lora_model_dir:
sequence_len: 40
sample_packing: false
lora_r: 4
lora_alpha: 8
lora_dropout: 0.0
lora_target_modules:
  - gate_proj
  - q_proj
wandb_project:
wandb_entity:
gradient_accumulation_steps: 1
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_torch
lr_scheduler: cosine
learning_rate: 0.0002
bf16: auto
tf32: false
gradient_checkpointing: true
resume_from_checkpoint:
logging_steps: 1
flash_attention: true
loss_watchdog_threshold: 5.0
loss_watchdog_patience: 3
evals_per_epoch: 1
saves_per_epoch: 1
weight_decay: 0.0
special_tokens:
  pad_token: "<|endoftext|>"
""")
    told = explained(job, "axolotl", "datasets.00.message_field_training = train  ->  training_key = train", "lora_r",
                     "warmup_rule = axolotl", "truncation_strategy = delete", "special_tokens.pad_token")
    check(told["keys"]["loss_watchdog_patience"]["fate"] == "ignored", told["keys"]["loss_watchdog_patience"])
    sequences, said = trained("axolotl", "--config", job)
    check(learned(sequences) == [["blue<|im_end|>"]] * 4, f"the key or the newline: learned {learned(sequences)}")
    check('"too_long": 1' in said, f"the row that is left out is not counted: {said}")
    check("which may differ from what the job names by chat_template" in said, f"the template is not spoken of: {said}")


def axolotls_alpaca_and_rows_that_are_held_out():
    data = WORK / "alpaca.jsonl"
    made.write_lines(data, [{"instruction": "one two", "input": "", "output": word} for word in ("red", "blue") * 4])
    job = write("alpaca.yml", f"base_model: {MODEL}\ndatasets:\n  - path: {data}\n    type: alpaca\nval_set_size: 0.25\n"
                "learning_rate: 1e-4\nmicro_batch_size: 2\nnum_epochs: 1\n")
    explained(job, "axolotl", "datasets.00.type = alpaca  ->  alpaca_prompts = true", "split_dataset_ratio = 0.25")
    sequences, _ = trained("alpaca", "--config", job)
    check(len(sequences) == 6 and {each for runs in learned(sequences) for each in runs} <= {"red<|im_end|>", "blue<|im_end|>"},
          f"learned {learned(sequences)}")
    text = TOKENIZER.decode(sequences[0][0], skip_special_tokens=False)
    check("### Instruction:" in text and "<|im_start|>" not in text, f"the prompt is {text}")


def a_job_of_trl():
    data = WORK / "trl.jsonl"
    made.write_lines(data, [TWO_ANSWERS] * 4)
    base = f"""model_name_or_path: {MODEL}
dataset_name: {data}
report_to:
  none
learning_rate:
  0.0001
lr_scheduler_type:
  cosine
use_peft: true
lora_target_modules: [q_proj, v_proj]
per_device_train_batch_size: 2
"""
    done = run("explain", write("trl_open.yaml", base), expect=1)
    check("TRL learns every token of chats" in done.stdout, done.stdout)
    job = write("trl.yaml", base + "assistant_only_loss: true\n")
    said = run("explain", job).stdout
    check("it does not say what it trains towards" in said, said)
    check("it does not say what it trains" not in run("explain", job, "--verb", "sft").stdout, "--verb says it")
    explained(job, "TRL", "assistant_only_loss", "loss_scale = default", "max_length = 1024", "lora_rank = 16")
    sequences, _ = trained("trl", "--config", job)
    check(learned(sequences) == [[FIRST, SECOND]] * 4, f"learned {learned(sequences)}")
    arguments = {"model_name_or_path": str(MODEL), "dataset_name": str(data), "output_dir": "x", "use_peft": False,
                 "assistant_only_loss": True, "max_length": 64, "bf16": False, "fp16": False, "weight_decay": 0.0,
                 "accelerator_config": {"split_batches": False}, "label_names": None, "optim": "adamw_torch_fused"}
    job = write("arguments.json", json.dumps(arguments))
    explained(job, "TRL", "max_length = 64", "precision = fp32")
    trained("trl-json", "--config", job)


def a_job_of_ms_swift():
    data = WORK / "swift.jsonl"
    line = json.loads(json.dumps(TWO_ANSWERS))
    line["messages"][1]["loss"] = False
    made.write_lines(data, [line] * 6)
    job = write("swift.yaml", f"""model: {MODEL}
split_dataset_ratio: 0.0
train_type: lora
torch_dtype: bfloat16
attn_impl: flash_attn
num_train_epochs: 5
per_device_train_batch_size: 1
per_device_eval_batch_size: 1
learning_rate: 1e-4
dataset: {data}#4
gradient_accumulation_steps: 2
eval_steps: 1000
save_steps: 1000
save_total_limit: 5
logging_steps: 5
warmup_ratio: 0.05
dataloader_num_workers: 0
dataset_num_proc: 8
model_name: swift-bot
model_author: swift
""")
    explained(job, "ms-swift", "train_type = lora  ->  tuner_type = lora", "attn_impl", "data_format = ms-swift")
    sequences, _ = trained("swift", "--config", job)
    check(learned(sequences) == [[SECOND]] * 4, f"loss: false and #4: learned {learned(sequences)}")


def what_is_wrong_is_said_at_once_and_for_a_run_too():
    job = write("wrong.yaml", "base_model: m\nlora_r: 4\nplugins: [a]\nnobody: 1\nmicro_batch_sise: 2\n")
    done = run("explain", job, expect=1)
    for part in ("refused  nobody", "refused  plugins", "did you mean micro_batch_size", "taken  lora_r", "4 keys of this job"):
        check(part in done.stdout, f"explain does not say '{part}':\n{done.stdout}")
    done = run("explain", job, "--lang", "zh", expect=1)
    check("拒绝  plugins" in done.stdout and "不能训练：" in done.stdout, done.stdout)
    own = write("run.toml", "steps = 4\nlearning_rate = 0.1\n")
    check("taken  steps = 4" in run("explain", own, "--verb", "run").stdout, "a job of run")
    wrong = write("wrong.toml", "stepz = 4\n")
    check("did you mean steps" in run("explain", wrong, "--verb", "run", expect=1).stdout, "a wrong job of run")


run_parts([rows_of_a_file, a_job_of_llama_factory, a_job_of_axolotl, axolotls_alpaca_and_rows_that_are_held_out, a_job_of_trl, a_job_of_ms_swift,
           what_is_wrong_is_said_at_once_and_for_a_run_too])
