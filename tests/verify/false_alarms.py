# SPDX-License-Identifier: Apache-2.0
# No false alarm: the quick level is run many times on machines with no fault, and no check may fail.
# A `ctest -C slow` of its own, since fifty runs take an hour; what alarms once in fifty runs is no verdict.
# Seeds differ, so that the arithmetic, the collectives and the training compute something else each time.
# usage: false_alarms.py SEALIFT_VERIFY SEALIFT_TRAIN [RUNS [SEED [ARGUMENTS OF run…]]]
#        SEALIFT_SECONDS=N: begin no run after N seconds; the last line says how many were made
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

VERIFY, TRAIN = map(os.path.abspath, sys.argv[1:3])
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else int(os.environ.get("SEALIFT_ROUNDS", "50"))
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
HERE = pathlib.Path(__file__).parent

work = pathlib.Path(tempfile.mkdtemp(prefix="false-alarms-"))
(work / "prefix/bin").mkdir(parents=True)
(work / "prefix/bin/sealift-train").symlink_to(TRAIN)
(work / "prefix/bin/python3").symlink_to("/usr/bin/python3")
# Golden runs are held to the bit here, of one process and of two ranks: where an alarm would be quickest.
(work / "prefix/share/sealift/golden").mkdir(parents=True)
for name, crew in (("one", ""), ("ddp", 'ranks = 2\nmethod = "ddp"\n'), ("fsdp", 'ranks = 2\nmethod = "fsdp"\n')):
    (work / "job.toml").write_text(f'name = "{name}"\nverb = "run"\n{crew}[settings]\nsteps = 8\n')
    subprocess.run([VERIFY, "golden", work / "job.toml", "--prefix", work / "prefix", "--out",
                    work / f"prefix/share/sealift/golden/{name}.json"], check=True, stdout=subprocess.DEVNULL)
chosen = random.Random(SEED)
counts, alarms, made, busy = {}, [], 0, 0
end = time.monotonic() + float(os.environ.get("SEALIFT_SECONDS", "inf"))
for number in range(RUNS):
    if time.monotonic() > end:
        break
    made += 1
    ranks, seed = chosen.choice([1, 2, 2, 3, 4]), chosen.randrange(1, 2**31)
    out = work / f"out{number}"
    command = [VERIFY, "run", "--device", "cpu", "--prefix", work / "prefix", "--out", out, "--ranks", ranks, "--seed",
               seed, *sys.argv[5:]]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900)
    if not (out / "report.json").exists():
        alarms.append(f"run {number} ({ranks} ranks, seed {seed}) wrote no report: {done.stderr[-2000:]}")
        continue
    for check in json.loads((out / "report.json").read_text())["checks"]:
        of_check = counts.setdefault(check["name"], {"PASS": 0, "FAIL": 0, "NOT RUN": 0})
        of_check[check["outcome"]] += 1
        busy += check["reason"]["en"].startswith("the machine was busy")
        if check["outcome"] == "FAIL":
            alarms.append(f"run {number} ({ranks} ranks, seed {seed}): {check['name']}: {check['reason']['en']}")
    if subprocess.run([sys.executable, HERE / "pages/chinese_pages.py", out]).returncode != 0:
        alarms.append(f"run {number}: its Chinese pages have English words")
    print(f"run {number + 1} of {RUNS}, {ranks} ranks, seed {seed}: exit code {done.returncode}", flush=True)
    shutil.rmtree(out)
for name, of_check in counts.items():
    print(f"{name}: {of_check['PASS']} PASS, {of_check['FAIL']} FAIL, {of_check['NOT RUN']} NOT RUN")
print(f"{busy} checks of rates were NOT RUN for other work on this machine")
shutil.rmtree(work)
if alarms:
    sys.exit(f"FALSE ALARMS in {made} runs:\n" + "\n".join(alarms))
print(f"no false alarm in {made} runs")
