#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# sealift-train race and compare as a user runs them: a made model of random values under each method on two ranks.
#   race_test.py SEALIFT_TRAIN
import array
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

TRAIN = pathlib.Path(sys.argv[1]).resolve()
SAMPLES = pathlib.Path(__file__).resolve().parents[3] / "samples/which_method"
WORDS, LENGTH, EXAMPLES = 64, 24, 32
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "num_hidden_layers": 3,
          "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": WORDS,
          "max_position_embeddings": 64, "tie_word_embeddings": False, "hidden_act": "silu", "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "torch_dtype": "float32", "eos_token_id": 2}


def make_tokens(path, tokenizer):
    """A token file as docs/token_files.md has it: text, two bytes a token, every token counts."""
    draw, count = random.Random(1), EXAMPLES * LENGTH
    numbers = lambda kind, values: array.array(kind, values).tobytes()  # noqa: E731
    head = b"SLTOKENS" + numbers("I", [1, 0, 2, 0]) + numbers("Q", [WORDS, EXAMPLES, EXAMPLES, count, 0])
    head += hashlib.sha256(tokenizer).digest() + bytes(32)
    body = numbers("Q", range(0, count + 1, LENGTH)) + b"\xff" * (count // 8)
    body += numbers("H", [draw.randrange(WORDS) for _ in range(count)])
    path.write_bytes(head + hashlib.sha256(head + body).digest() + body)


def run(*words, code=0, env={}):
    done = subprocess.run([TRAIN, *words], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "SEALIFT_TRAIN_DEVICE": "cpu", "SEALIFT_TRAIN_THREADS": "1", **env})
    assert done.returncode == code, f"{words} exited with {done.returncode}, expected {code}\n{done.stdout}{done.stderr}"
    return done


def main():
    work = tempfile.TemporaryDirectory()
    os.chdir(work.name)
    folder = pathlib.Path(work.name)
    (folder / "model").mkdir()
    (folder / "model/config.json").write_text(json.dumps(CONFIG))
    (folder / "model/tokenizer.json").write_text("{}")
    make_tokens(folder / "rows.tokens", b"{}")
    (folder / "job.toml").write_text('model = "model"\ndataset = "rows.tokens"\ntuner_type = "none"\n'
                                     'per_device_train_batch_size = 1\ngradient_accumulation_steps = 2\n'
                                     'sharding_strategy = "FULL_SHARD"\n')

    print("each method runs, computes the same and costs what it costs")
    race = ("race", "job.toml", "--verb", "pretrain", "--ranks", "2", "--steps", "4")
    found = json.loads(run(*race, "--methods", "ddp,fsdp,shard_grad_op", "--page", "race.html", "--json").stdout)
    assert [each["name"] for each in found["runs"]] == ["ddp x2", "fsdp x2", "shard_grad_op x2"], found
    assert [each["losses"] for each in found["runs"]] == ["first", "agrees", "agrees"], found
    for each in found["runs"]:
        numbers = [each[key] for key in ("peak_memory_bytes", "planned_memory_bytes", "tokens_per_second_per_device",
                                         "step_seconds", "start_up_seconds", "checkpoint_seconds")]
        assert all(isinstance(number, (int, float)) and number > 0 for number in numbers), each
        assert 0 <= each["waiting_share"] <= 1 and each["planned_step_seconds"] is None, each
        assert not {"checkpoints", "model"} & set(os.listdir(f"sealift-race/{each['method']}")), each
    ddp, fsdp, kept = found["runs"]
    assert fsdp["planned_memory_bytes"] < ddp["planned_memory_bytes"] < ddp["peak_memory_bytes"], found
    assert fsdp["planned_memory_bytes"] <= kept["planned_memory_bytes"], found
    assert "advise nothing about cards" in found["advice"], found
    page = (folder / "race.html").read_text()
    assert all(each["name"] in page for each in found["runs"]) and "<svg" in page, page

    print("a race begins anew, and says what it cannot do before it starts")
    assert "sealift-race/ddp exists" in run(*race, "--methods", "ddp", code=2).stderr
    assert "zero3 is no method" in run(*race, "--methods", "zero3", "--out", "o", code=2).stderr
    launched = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    assert "was started as a rank" in run(*race, "--out", "o", code=2, env=launched).stderr

    print("a method that cannot be is a row with its reason, and the others run")
    table = run(*race, "--methods", "hsdp,ddp", "--out", "two", "--lang", "zh", code=1).stdout
    assert "失败：" in table and "shard_size" in table and "作为基准" in table, table

    print("finished runs are put side by side")
    assert "Take" in run("compare", "sealift-race/ddp", "sealift-race/fsdp/result.json").stdout
    changed = json.loads((folder / "sealift-race/fsdp/result.json").read_text())
    changed["losses"][-1] *= 1.001
    (folder / "changed.json").write_text(json.dumps(changed))
    assert "DIFFERS by 0.001" in run("compare", "sealift-race/ddp", "changed.json", code=1).stdout
    changed["configuration"]["seed"] = "7"
    (folder / "changed.json").write_text(json.dumps(changed))
    assert "another job: seed" in run("compare", "sealift-race/ddp", "changed.json").stdout
    assert "changed.toml" in run("compare", "changed.toml", code=2).stderr

    print("families are listed, and one that is not there is told by the nearest")
    all_of_them = json.loads(run("families", "--json").stdout)["families"]
    assert {"model_type", "adds", "LoRA", "QLoRA", "packing", "reward", "ep"} == set(all_of_them[0]), all_of_them
    with_experts = {"mixtral", "qwen3_moe", "deepseek_v3", "glm4_moe", "gpt_oss", "llama4_text"}
    assert {each["model_type"] for each in all_of_them if each["ep"]} == with_experts, all_of_them
    for page in ("models.md", "models_zh.md"):
        text = (SAMPLES.parents[1] / "docs" / page).read_text()
        missing = [each["model_type"] for each in all_of_them if f"\n| `{each['model_type']}` | " not in text]
        assert not missing, (page, missing)
    assert "qwen3  " in run("families", "qwen3").stdout
    assert "the nearest is qwen3_moe, and" in run("families", "qwen3_next", code=2).stderr

    print("what a step of OLMo's case sends: docs/which_method.md's figures")
    rows = json.loads(run("plan", "--model", SAMPLES / "olmo_1b", "--machine", "1x4x80GB", "--tuner", "none", "--length",
                          "2048", "--batch", "256", "--no-offload", "--flops", "66T", "--link", "2.9GB/s",
                          "--json").stdout)["rows"]
    two_by_32 = {each["way"]: each for each in rows if each["way"].split(", ")[1] == "2 rows x 32"}
    page = (SAMPLES.parents[1] / "docs/which_method.md").read_text()
    for way in ("ddp, 2 rows x 32", "fsdp, 2 rows x 32, kept gathered",
                "fsdp, 2 rows x 32, kept gathered, reduce every micro-batch"):
        row = two_by_32["full bf16 " + way]
        sent, rate = f"{row['sent']['sum'] / 1e9:.1f} GB", f"{row['tokens_per_second'] / 4:,.0f}"
        assert f"| {sent} | {rate} |" in page, (way, sent, rate)
    shutil.copytree(SAMPLES / "olmo_1b", folder / "olmo")
    (folder / "olmo/tokenizer.json").write_text("{}")
    dry = json.loads(run("pretrain", "--config", SAMPLES / "olmo_1b.toml", "--model", "olmo", "--dataset", "rows.tokens",
                         "--ranks", "4", "--dry-run", "true").stdout)
    assert dry["micro_batches"] == 32 and dry["parameters"] == 1176764416, dry


main()
