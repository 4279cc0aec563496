# SPDX-License-Identifier: Apache-2.0
# For `samples/air_gap.sh --with-ms-swift`: a made Qwen2, its tokenizer, conversations, and two golden runs of them, so that
# a site can hold sealift-train, Python's DDP and FSDP2, PEFT and `swift sft` to the same losses. Nothing is downloaded.
#   made_qwen.py OUT PROGRAMS LIBRARIES      PROGRAMS: where sealift-train and sealift-verify are; LIBRARIES: LibTorch's
# OUT gets qwen/, chats/train.jsonl, first/ (an adapter to begin from, since first values would be each program's own),
# qwen.golden.json (all parameters) and qwen_lora.golden.json. This Python needs torch, transformers and tokenizers.
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
            "+ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
WORDS = "sealed lifted over the gap disc by carried verified small large old new one two three".split()
SHAPE = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 256, "tie_word_embeddings": False}
# One pass over the first rows in their order, without chance: what every program can do alike.
SFT = {"model": "models/qwen", "dataset": "data/chats/train.jsonl", "model_type": "qwen2", "template": "chatml",
       "max_steps": 5, "learning_rate": 0.01, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2,
       "lora_dropout": 0, "train_dataloader_shuffle": False, "warmup_steps": 2, "lr_scheduler_type": "cosine"}
GOLDEN = {"qwen": {"tuner_type": "none"}, "qwen_lora": {"tuner_type": "lora", "adapters": "data/first"}}


def make_model(folder):
    import tokenizers
    import torch
    import transformers

    folder.mkdir(parents=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=SHAPE["vocab_size"], special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([" ".join(WORDS)] * 4 + ["user\nassistant\n"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE,
         "tokenizer_class": "PreTrainedTokenizerFast"}))
    torch.manual_seed(1)
    config = transformers.Qwen2Config(**SHAPE, use_cache=False, eos_token_id=2, pad_token_id=0)
    transformers.Qwen2ForCausalLM(config).float().save_pretrained(folder)


def make_chats(folder, count=64):
    """What there is to learn: the words backwards."""
    draw = random.Random(1)
    folder.mkdir(parents=True)
    with (folder / "train.jsonl").open("w") as out:
        for _ in range(count):
            words = [draw.choice(WORDS) for _ in range(draw.randint(3, 9))]
            turns = [("user", words), ("assistant", words[::-1])]
            line = {"messages": [{"role": role, "content": " ".join(said)} for role, said in turns]}
            out.write(json.dumps(line) + "\n")


def lay_out(out, programs):
    """A folder as the installation will be: what a golden run reads is named by its path in it."""
    prefix = out / "prefix"
    for folder in ("bin", "models", "data"):
        (prefix / folder).mkdir(parents=True)
    shutil.copy(programs / "sealift-train", prefix / "bin")  # no link: it looks for the Python beside it
    python = prefix / "bin/python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (prefix / "models/qwen").symlink_to(out / "qwen")
    for name in ("chats", "first"):
        (prefix / "data" / name).symlink_to(out / name)
    return prefix


def record(name, out, prefix, programs, run):
    settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in {**SFT, **GOLDEN[name]}.items())
    job = out / f"{name}.toml"
    job.write_text(f'name = "{name}"\nverb = "sft"\n[settings]\n{settings}\n[tolerances]\nfp32 = 1e-4\n')
    run(programs / "sealift-verify", "golden", job, "--prefix", prefix, "--out", out / f"{name}.golden.json")


def main():
    out, programs, libraries = map(pathlib.Path, sys.argv[1:4])
    out, programs = out.absolute(), programs.absolute()
    variables = {**os.environ, "LD_LIBRARY_PATH": str(libraries.absolute()), "HF_HUB_OFFLINE": "1"}

    def run(*words):
        subprocess.run(list(map(str, words)), check=True, env=variables)

    shutil.rmtree(out, ignore_errors=True)
    make_model(out / "qwen")
    make_chats(out / "chats")
    prefix = lay_out(out, programs)
    data = prefix / SFT["dataset"]
    run(prefix / "bin/sealift-train", "sft", "--model", prefix / SFT["model"], "--dataset", data, "--lora-dropout", "0",
        "--max-steps", "1", "--learning-rate", "0.01", "--per-device-train-batch-size", "8",
        "--gradient-accumulation-steps", "1", "--save-strategy", "no", "--output-dir", out / "begun")
    shutil.copytree(out / "begun/adapter", out / "first")
    for name in GOLDEN:
        record(name, out, prefix, programs, run)
    for folder in ("prefix", "begun"):
        shutil.rmtree(out / folder)


main()
