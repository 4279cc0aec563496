# SPDX-License-Identifier: Apache-2.0
# sealift-verify's training part with a fault in it: each is named for what it is.
#   another weight, another datum, a wrong reference, a rank that is killed, one that trains another job, a damaged checkpoint
# usage: training_faults_test.py SEALIFT_VERIFY SEALIFT_TRAIN REPOSITORY [PART…]      PART: a function's name; without: all
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import sys
import threading
import time

from training_site import GOLDEN, PREFIX, WORK, check, run, run_parts


def changed_files():
    for path, name in (("models/tiny/model.safetensors", "weight"), ("data/chat.tokens", "datum")):
        file = PREFIX / path
        good = file.read_bytes()
        file.write_bytes(good[:-2] + bytes([good[-2] ^ 0x40]) + good[-1:])
        checks = run(name, "--only", "training.golden.qwen", only="training.golden.qwen", expect=1)
        file.write_bytes(good)
        for each in checks.values():
            check(each["outcome"] == "FAIL" and each["at_fault"][0].startswith(path + " on "), each)


def other_reference():
    """The model that was recorded is another than the one that is carried: one weight differs."""
    file = PREFIX / "models/tiny/model.safetensors"
    good = file.read_bytes()
    recorded = (GOLDEN / "qwen.json").read_text()
    file.write_bytes(good[:-2] + bytes([good[-2] ^ 0x01]) + good[-1:])
    golden = json.loads(recorded)
    golden["inputs"]["models/tiny/model.safetensors"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (GOLDEN / "qwen.json").write_text(json.dumps(golden))
    for ranks, side in ((1, "which says"), (2, "agree with each other")):
        found = run(f"unequal{ranks}", "--ranks", ranks, only="training.golden.qwen", expect=1)["training.golden.qwen"]
        side = "the Python part says which" if ranks == 1 else side
        check(found["outcome"] == "FAIL" and "part in step" in found["reason"]["en"] and side in found["reason"]["en"],
              found["reason"])
    file.write_bytes(good)
    golden = json.loads(recorded)
    golden["losses"][3] = repr(float(golden["losses"][3]) * 1.001)
    (GOLDEN / "qwen.json").write_text(json.dumps(golden))
    found = run("reference", only="training.golden.qwen", expect=1)["training.golden.qwen"]
    check("part in step 4" in found["reason"]["en"], found["reason"])
    (GOLDEN / "qwen.json").write_text("{ torn")
    found = run("torn", only="training.golden.qwen", expect=1)["training.golden.qwen"]
    check("is no golden run" in found["reason"]["en"], found["reason"])
    (GOLDEN / "qwen.json").write_text(recorded)


def has_stepped(job):
    """Whether `job` has logged a step: its ranks have met and train."""
    logs = pathlib.Path(os.environ["TMPDIR"]).glob(f"sealift-verify-*/*/{job}/log.jsonl")
    return any('"step"' in log.read_text() for log in logs)


def kill_rank_1(job, stop):
    """Kills the process that is rank 1 of a child job after its first step."""
    while not stop.is_set():
        try:
            stepped = has_stepped(job)
        except OSError:  # a folder that is removed meanwhile
            stepped = False
        if not stepped:
            time.sleep(0.02)
            continue
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                variables = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == str(PREFIX / "bin/sealift-train").encode() and b"RANK=1" in variables:
                try:
                    os.kill(int(process.name), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return
        time.sleep(0.02)


def killed_rank():
    stop = threading.Event()
    killer = threading.Thread(target=kill_rank_1, args=("fsdp", stop))
    killer.start()
    # 100 steps: enough that the kill falls among them.
    found = run("killed", "--ranks", "2", "--level", "full", only="training.fsdp", expect=1)["training.fsdp"]
    stop.set()
    killer.join()
    check(found["outcome"] == "FAIL" and found["at_fault"][0].startswith("rank 1 on") and len(found["at_fault"]) == 1,
          found)
    check("signal 9" in found["reason"]["en"], found["reason"])


@contextlib.contextmanager
def wrapped(lines):
    """The prefix's sealift-train does `lines` of shell first."""
    program, real = PREFIX / "bin/sealift-train", PREFIX / "bin/real"
    program.rename(real)
    program.write_text(f'#!/bin/sh\n{lines}\nexec "{real}" "$@"\n')
    program.chmod(0o755)
    yield
    real.rename(program)


def wrong_rank():
    with wrapped('[ "$RANK" != 1 ] || export SEALIFT_TRAIN_LEARNING_RATE=0.03'):
        for method in ("ddp", "fsdp"):
            found = run(f"wrong_{method}", "--ranks", "2", only=f"training.{method}", expect=1)[f"training.{method}"]
            check(found["outcome"] == "FAIL", found)


DAMAGE = """
import pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--checkpoint-folder") + 1])
for file in folder.rglob("*") if folder.is_dir() else []:
    if file.is_file() and file.suffix != ".json":
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
"""


def changed_checkpoint():
    """One bit of what was saved is another when the job goes on."""
    (WORK / "damage.py").write_text(DAMAGE)
    damage = f'case "$*" in *--checkpoint-folder*) [ "${{RANK:-0}}" != 0 ] || "{sys.executable}" "{WORK}/damage.py" "$@";; esac'
    with wrapped(damage):
        for name in ("resume", "other_world"):
            found = run(f"damaged_{name}", "--ranks", "2", "--level", "full", only=f"training.{name}", expect=1)
            found = found[f"training.{name}"]
            check(found["outcome"] == "FAIL" and any("rank 0 on" in who for who in found["at_fault"]), found)


run_parts([changed_files, other_reference, killed_rank, wrong_rank, changed_checkpoint])
