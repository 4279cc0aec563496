#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# samples/log_to_tracker.py: what it makes of a log that was cut, computed twice and has texts for numbers; with "real",
# what the trackers themselves then have, from PyPI in an environment of this test's own (label network).
#   log_to_tracker_test.py SCRIPT [real FOLDER]
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(sys.argv[1]).resolve()
LOG = b"""{"step":1,"loss":5.0,"grad_norm":1.5,"learning_rate":0.1,"note":"text"}
{"step":2,"loss":"nan","grad_norm":"inf","finished":true}
{"step":2,"eval_loss":4.5,"eval_accuracy":0.25}
{"step":3,"loss":3.0}
{"step":4,"loss":2.9}
{"step":4,"eval_loss":9.9}
{"step":5,"loss":2.8}
{"step":6,"lo
{"step":3,"loss":3.5}
["no object"]
{"step":"4","loss":1}
{"step":4,"loss":2.5,"learning_rate":0.05}
{"step":4,"eval_loss":2.25}
\x00\x00\x00"""
EXPECTED = {"loss": {1: 5.0, 3: 3.5, 4: 2.5}, "grad_norm": {1: 1.5}, "learning_rate": {1: 0.1, 4: 0.05},
            "eval_loss": {2: 4.5, 4: 2.25}, "eval_accuracy": {2: 0.25}}
TAGS = {("eval/" + name[5:] if name.startswith("eval_") else "train/" + name): curve for name, curve in EXPECTED.items()}


def run_script(python, *words, code=0):
    done = subprocess.run([python, SCRIPT, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done
    return done


def check_reader(folder):
    done = run_script(sys.executable, folder / "run")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["step"] for row in rows] == ["1", "2", "3", "4"], rows
    curves = {name: {int(row["step"]): float(row[name]) for row in rows if row[name]} for name in rows[0] if name != "step"}
    assert curves == EXPECTED, curves
    assert "4 line(s)" in done.stderr and "4 steps of" in done.stderr, done.stderr
    (folder / "empty").mkdir()
    (folder / "empty/log.jsonl").write_text('{"step":1,"loss":"nan"}\n')
    done = run_script(sys.executable, folder / "empty", code=1)
    assert "has no step with a number" in done.stderr, done.stderr


def check_wandb(folder, python):
    run_script(python, folder / "run", "--to", "wandb", "--folder", folder / "w")
    log, = (folder / "w/wandb").glob("offline-run-*/run-*.wandb")
    read = """
import json, struct, sys
from wandb.proto import wandb_internal_pb2
data, curves = open(sys.argv[1], "rb").read(), {}
at, whole = 7, b""  # behind the header: LevelDB's log, blocks of 32 KiB with records of a checksum, a length, a kind
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    _, length, kind = struct.unpack_from("<IHB", data, at)
    whole, at = whole + data[at + 7:at + 7 + length], at + 7 + length
    if kind not in (1, 4):  # neither whole nor the last part
        continue
    record, whole = wandb_internal_pb2.Record.FromString(whole), b""
    if record.WhichOneof("record_type") != "history":
        continue
    items = {(item.key or item.nested_key[0]): json.loads(item.value_json) for item in record.history.item}
    for name, value in items.items():
        if not name.startswith("_"):
            curves.setdefault(name, {})[items["_step"]] = value
print(json.dumps(curves))
"""
    return json.loads(subprocess.run([python, "-c", read, log], check=True, capture_output=True, text=True).stdout)


def check_mlflow(folder, python):
    run_script(python, folder / "run", "--to", "mlflow", "--folder", folder / "m")
    curves = {}
    for file in (folder / "m/mlruns").glob("*/*/metrics/*/*"):
        points = [line.split() for line in file.read_text().splitlines()]
        curves[f"{file.parent.name}/{file.name}"] = {step: float(value) for _, value, step in points}
    return curves


def as_numbers(curves):
    return {name: {int(step): value for step, value in curve.items()} for name, curve in curves.items()}


with tempfile.TemporaryDirectory() as place:
    place = pathlib.Path(place)
    (place / "run").mkdir()
    (place / "run/log.jsonl").write_bytes(LOG)
    (place / "run/result.json").write_text('{"configuration": {"learning_rate": "0.1", "steps": "4"}}')
    check_reader(place)
    if sys.argv[2:3] == ["real"]:
        environment = pathlib.Path(sys.argv[3])
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / "bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "wandb", "mlflow-skinny"], check=True)
        for check in (check_wandb, check_mlflow):
            curves = as_numbers(check(place, python))
            assert curves == TAGS, (check.__name__, curves)
print("good")
