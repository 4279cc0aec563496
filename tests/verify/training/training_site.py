# SPDX-License-Identifier: Apache-2.0
# A prefix as a site has it, with a made Qwen, its chats and golden runs; what runs sealift-verify on it. Of the two tests
# beside it: training_test.py, where all is well, and training_faults_test.py, where something is not.
# usage: TEST SEALIFT_VERIFY SEALIFT_TRAIN REPOSITORY [PART…]      PART: a function's name; without: all
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
VERIFY, TRAIN, REPOSITORY = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
# For the Python of the prefix too: peers, or what has ms-swift.
os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(":") if p)
sys.path.insert(0, str(REPOSITORY / "tests/train/loop"))
import made_model as made  # noqa: E402

BEGAN = time.monotonic()
WORK = pathlib.Path(tempfile.mkdtemp(prefix="training-test-"))
PREFIX = WORK / "prefix"
os.environ["TMPDIR"] = str(WORK / "tmp")
(WORK / "tmp").mkdir()
GOLDEN = PREFIX / "share/sealift/golden"


def say(text):
    print(f"[{time.monotonic() - BEGAN:5.1f} s] {text}", flush=True)


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}; see {WORK}")


def verify(*arguments, expect=0):
    done = subprocess.run([VERIFY, *map(str, arguments)], capture_output=True, text=True, timeout=1200, cwd=WORK)
    if done.returncode != expect:
        print(done.stdout, done.stderr[-4000:], sep="\n")
        check(False, f"{arguments} exited with {done.returncode}, expected {expect}")
    return done


def run(name, *arguments, expect=0, only="training.golden"):
    """The checks of a run by name, without those that `only` leaves out."""
    out = WORK / name
    verify("run", "--device", "cpu", "--prefix", PREFIX, "--out", out, "--only", only, *arguments, expect=expect)
    checks = {each["name"]: each for each in json.loads((out / "report.json").read_text())["checks"]
              if not each["reason"]["en"].startswith("left out:")}
    for each in checks.values():
        say(f"{name}: {each['outcome']} {each['name']}: {each['reason']['en'][:300]}")
    return checks


def prefix():
    (PREFIX / "bin").mkdir(parents=True)
    GOLDEN.mkdir(parents=True)
    shutil.copy(TRAIN, PREFIX / "bin")  # no link: the Python beside it makes tokens of conversations
    (PREFIX / "bin/python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (PREFIX / "bin/python3").chmod(0o755)
    (PREFIX / "models").mkdir()
    (PREFIX / "data").mkdir()
    made.make_model(PREFIX / "models/tiny")
    chat = WORK / "chat.jsonl"
    made.write_lines(chat, made.chat_lines(64, 3))
    subprocess.run([sys.executable, REPOSITORY / "trainer/data/tokenize", "--model", PREFIX / "models/tiny",
                    "--data", chat, "--out", PREFIX / "data/chat.tokens"], check=True, stdout=subprocess.DEVNULL)


SFT = {"model": "models/tiny", "dataset": "data/chat.tokens", "max_steps": 5, "learning_rate": 0.01,
       "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "lora_dropout": 0,
       "train_dataloader_shuffle": False, "warmup_steps": 2, "lr_scheduler_type": "cosine"}
JOBS = {"gpt": ("run", {"steps": 8}), "qwen": ("sft", {**SFT, "tuner_type": "none"}),
        "qwen_lora": ("sft", {**SFT, "tuner_type": "lora"})}
LINES = {**SFT, "dataset": "data/chat.jsonl", "model_type": "qwen2", "template": "chatml"}
SWIFT = {"chat": ("sft", {**LINES, "tuner_type": "none"}),
         "chat_lora": ("sft", {**LINES, "tuner_type": "lora", "adapters": "models/first"})}
HALF = {**SFT, "per_device_train_batch_size": 2}
RANKS = {"gpt_ddp": ("run", {"steps": 8}, "ddp"), "qwen_fsdp": ("sft", {**HALF, "tuner_type": "none"}, "fsdp"),
         "lora_ddp": ("sft", {**HALF, "tuner_type": "lora"}, "ddp")}


def record(name):
    verb, settings, *method = {**JOBS, **RANKS, **SWIFT}[name]
    job = WORK / f"{name}.toml"
    crew = f'ranks = 2\nmethod = "{method[0]}"\n' if method else ""
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    job.write_text(f'name = "{name}"\nverb = "{verb}"\n{crew}[settings]\n{text}\n[tolerances]\nfp32 = 1e-5\n')
    verify("golden", job, "--prefix", PREFIX, "--out", GOLDEN / f"{name}.json")


def run_parts(parts):
    """Records the golden runs, then each part that the command line names, or all."""
    prefix()
    for name in JOBS:
        record(name)
    say("golden runs are recorded")
    for part in parts:
        if sys.argv[4:] and part.__name__ not in sys.argv[4:]:
            continue
        part()
        say(f"{part.__name__} is good")
    shutil.rmtree(WORK)
