# SPDX-License-Identifier: Apache-2.0
# What goes wrong in a long job, done to sealift-train as a site has it: each ends right, or with a line that names what.
#   a disk that is full at a save, and has room again later, a quota, a folder that goes away; a full folder of logs
#   a checkpoint whose bytes changed, one whose index is cut, all of them
#   SIGTERM to the launcher of the ranks and to all processes, before the first step too, a time limit; the same command goes on
#   a MASTER_ADDR that no name service knows; a rank that stands still for a while, and for too long; clocks that jump
# usage: failures_test.py SEALIFT_TRAIN JUMPING_CLOCK REACHED_QUOTA [PART…]      libraries to preload, of these sources
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TRAIN, CLOCK, QUOTA = sys.argv[1:4]
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("SEALIFT_TRAIN_", "RANK", "WORLD"))}
ENVIRONMENT.update(SEALIFT_TRAIN_DEVICE="cpu", SEALIFT_TRAIN_THREADS="1")
# A language that is learned in a few dozen steps, since a run of 100 or more is judged.
TINY = {"--layers": 2, "--width": 32, "--heads": 2, "--context": 16, "--global-batch": 32, "--vocabulary": 5}
BEGAN = time.monotonic()
LEFT_OUT, FAILED = [], []


def say(text):
    print(f"[{time.monotonic() - BEGAN:5.1f} s] {text}", flush=True)


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


class Run:
    """`sealift-train run` in the background; its standard error is read as it comes."""

    def __init__(self, out, *more, ranks=2, **environment):
        settings = TINY | dict(zip(more[::2], more[1::2])) | {"--out": out}
        if ranks > 1:
            settings |= {"--ranks": ranks, "--parallel-method": "fsdp"}
        words = [TRAIN, "run", *(str(word) for pair in settings.items() for word in pair)]
        self.out, self.errors = out, WORK / f"errors-{time.monotonic_ns()}"
        self.child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.errors.open("w"),
                                      env=ENVIRONMENT | environment, start_new_session=True)

    def said(self):
        return self.errors.read_text()

    def wait_for(self, holds, what, seconds=60):
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end or self.child.poll() is not None:
                check(holds(), f"{what}: {self.said()[-3000:]}")
                return
            time.sleep(0.02)

    def wait_for_steps(self, number):
        log = self.out / "log.jsonl"
        self.wait_for(lambda: log.exists() and log.read_text().count("\n") >= number, f"no {number} steps")

    def ends(self, code, *says, seconds=90):
        try:
            found = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            sys.exit(f"FAILED: does not end: {self.said()[-3000:]}")
        check(found == code, f"exit code {found}, expected {code}: {self.said()[-3000:]}")
        for each in says:
            check(re.search(each, self.said()), f"'{each}' is not said: {self.said()[-3000:]}")
        result = self.out / "result.json"
        return json.loads(result.read_text()) if result.exists() and result.stat().st_size else None


def undisturbed(steps, ranks=2):
    out = WORK / f"undisturbed-{steps}-{ranks}"
    if not out.exists():
        Run(out, "--steps", steps, ranks=ranks).ends(0)
    return json.loads((out / "result.json").read_text())["losses"]


class SmallDisk:
    """A file system of so many bytes, which only root can make."""

    def __init__(self, size):
        self.path = pathlib.Path(tempfile.mkdtemp(dir=WORK))
        libc = ctypes.CDLL(None, use_errno=True)
        self.made = libc.mount(b"none", bytes(self.path), b"tmpfs", 0, f"size={size}".encode()) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.made:
            ctypes.CDLL(None).umount2(bytes(self.path), 2)

    def fill(self, but=0):
        """Takes all that is free; the file to remove."""
        filler = self.path / "filler"
        with filler.open("wb", buffering=0) as file:
            while shutil.disk_usage(self.path).free > but:
                try:
                    file.write(bytes(4096))
                except OSError:  # another was faster
                    break
        return filler


def steps_in(folder):
    return sorted(each.name for each in folder.iterdir())


def a_disk_that_is_full_at_a_save():
    with SmallDisk(16 << 20) as disk:
        if not disk.made:
            return LEFT_OUT.append("a full disk: no tmpfs can be mounted here")
        saved = disk.path / "saved"
        run = Run(WORK / "full", "--steps", 96, "--checkpoint-folder", saved, "--checkpoint-every", 4)
        run.wait_for(lambda: saved.exists() and any(each.name == "index.json" for each in saved.rglob("index.json")),
                     "no checkpoint")
        filler = disk.fill()
        run.wait_for(lambda: "is not saved" in run.said(), "the full disk is not said")
        good = re.search(r"the last good checkpoint is that of step (\d+)", run.said())
        check(good, f"the last good checkpoint is not named: {run.said()}")
        check((saved / f"step-{int(good[1]):06}" / "index.json").exists(), "the last good checkpoint is gone")
        filler.unlink()
        result = run.ends(0, r"No space left on device", r"it takes [\d.]+ .?B, and [\d.]+ .?B are free there",
                          r"tried again after step \d+", r"is saved again")
        check(result["finished"] and result["failed_saves"], "the result does not tell of the saves that failed")
        check(result["losses"] == undisturbed(96), "losses differ from those of a run with room")
        check(steps_in(saved) == ["step-000092", "step-000096"], f"kept are {steps_in(saved)}")


def a_quota_that_is_reached():
    saved, reached = WORK / "quota-saved", WORK / "quota-reached"
    run = Run(WORK / "quota", "--steps", 96, "--checkpoint-folder", saved, "--checkpoint-every", 4, LD_PRELOAD=QUOTA,
              QUOTA_FOLDER=str(saved), QUOTA_REACHED=str(reached))
    run.wait_for(lambda: saved.exists() and any(saved.rglob("index.json")), "no checkpoint")
    reached.touch()
    run.wait_for(lambda: "is not saved" in run.said(), "the quota is not said")
    reached.unlink()
    result = run.ends(0, r"Disk quota exceeded; make room, or write to another disk", "is saved again")
    check(result["failed_saves"] and result["losses"] == undisturbed(96), "losses differ from those of a run with room")


def a_folder_that_goes_away():
    saved = WORK / "gone-saved"
    run = Run(WORK / "gone", "--steps", 96, "--checkpoint-folder", saved, "--checkpoint-every", 4)
    run.wait_for(lambda: saved.exists() and any(saved.rglob("index.json")), "no checkpoint")
    saved.rename(WORK / "gone-meanwhile")
    saved.touch()  # a mount that is gone leaves what cannot be a folder
    run.wait_for(lambda: "is not saved" in run.said(), "the folder that is gone is not said")
    saved.unlink()
    (WORK / "gone-meanwhile").rename(saved)
    result = run.ends(0, "gone-saved", "is saved again")
    check(result["finished"] and result["losses"] == undisturbed(96), "losses differ from those of a run with its folder")


def a_disk_on_which_checkpoints_will_not_fit():
    with SmallDisk(4 << 20) as disk:
        if not disk.made:
            return LEFT_OUT.append("a small disk: no tmpfs can be mounted here")
        wide = ["--width", "64", "--steps", "40", "--checkpoint-folder", disk.path / "saved", "--checkpoint-every", "10"]
        disk.fill(but=200 << 10)
        Run(WORK / "none-fits", *wide).ends(1, r"take [\d.]+ .?B each in .*not one fits")
        (disk.path / "filler").unlink()
        disk.fill(but=1700 << 10)
        run = Run(WORK / "one-fits", *wide)
        result = run.ends(0, r"note: the checkpoints of this run take .* 3 more of them at the peak")
        check(result["finished"], "it ends without room for all of its checkpoints")


def a_folder_of_logs_that_is_full():
    with SmallDisk(1 << 20) as disk:
        if not disk.made:
            return LEFT_OUT.append("a full folder of logs: no tmpfs can be mounted here")
        out = disk.path / "out"
        out.mkdir()
        filler = disk.fill()
        run = Run(out, "--steps", 30)
        run.wait_for(lambda: "what this run made is not saved" in run.said(), "the full folder is not said")
        filler.unlink()
        run.ends(0, r"cannot write .*/out/log.jsonl: No space left on device; training goes on")
        check(json.loads((out / "result.json").read_text())["losses"] == undisturbed(30), "losses differ")


def a_checkpoint_that_is_damaged():
    saved, out = WORK / "damaged-saved", WORK / "damaged"
    words = ["--checkpoint-folder", saved, "--checkpoint-every", 3, "--keep-checkpoints", 3]
    Run(out, "--steps", 9, *words).ends(0)
    for damage, file in (("a byte", "rank-00001.safetensors"), ("cut", "index.json")):
        last = saved / "step-000009"
        content = bytearray((last / file).read_bytes())
        if damage == "cut":
            content = content[:-200]
        else:
            content[-100] ^= 1
        (last / file).write_bytes(content)
        result = Run(out, "--steps", 9, *words).ends(0, r"checkpoint .*step-000009 is damaged: .*" + file,
                                                     "resuming after step 6", "kept as .*damaged-step-000009")
        check(result["losses"] == undisturbed(9), f"losses differ after a checkpoint with damage ({damage})")
        check((saved / "damaged-step-000009").exists() and last.exists(), "it is not set aside")
    for each in saved.glob("step-*"):
        (each / "rank-00000.safetensors").write_bytes(b"")
    Run(out, "--steps", 12, *words).ends(1, r"no checkpoint can be read, of 3: .*remove them to begin anew")
    check(len(list(saved.glob("step-*"))) == 3, "checkpoints are gone although none could be read")


def told_to_end():
    for name, tell in (("launcher", os.kill), ("all", os.killpg)):
        saved, out = WORK / f"told-{name}-saved", WORK / f"told-{name}"
        words = ["--checkpoint-folder", saved]
        run = Run(out, "--steps", 100000, *words)
        run.wait_for_steps(5)
        tell(run.child.pid, signal.SIGTERM)
        result = run.ends(143, r"told to end by SIGTERM: not finished, ended after step \d+ of 100000", seconds=30)
        step = result["steps"]
        check(result["finished"] is False and result["ended_by"] == "SIGTERM" and result["verdict"] == "not judged",
              "result.json says that it is finished")
        check(steps_in(saved) == [f"step-{step:06}"], f"step {step} is not saved: {steps_in(saved)}")
        result = Run(out, "--steps", step + 5, *words).ends(0, f"resuming after step {step}")
        check(result["finished"] and len(result["losses"]) == step + 5, "the same command does not go on")
    run = Run(WORK / "told-alone", "--steps", 100000, ranks=1)
    run.wait_for_steps(5)
    os.kill(run.child.pid, signal.SIGTERM)
    run.ends(143, "it has no checkpoint, so the same command begins anew", seconds=30)


def told_on_a_full_disk():
    with SmallDisk(8 << 20) as disk:
        if not disk.made:
            return LEFT_OUT.append("told on a full disk: no tmpfs can be mounted here")
        run = Run(disk.path / "out", "--steps", 100000, "--checkpoint-folder", disk.path / "saved", "--checkpoint-every", 4)
        run.wait_for_steps(5)
        disk.fill()
        os.kill(run.child.pid, signal.SIGTERM)
        run.ends(143, "told to end by SIGTERM", "the result of this unfinished run is not written", seconds=30)


def out_of_time():
    saved, out = WORK / "late-saved", WORK / "late"
    began = time.monotonic()
    result = Run(out, "--steps", 1000000, "--time-limit", 4, "--checkpoint-folder", saved).ends(
        124, r"the time limit of 4 s is reached: not finished", seconds=30)
    check(result["ended_by"] == "time_limit" and time.monotonic() - began < 15, "it takes no notice of its limit")
    result = Run(out, "--steps", result["steps"] + 2, "--checkpoint-folder", saved).ends(0, "resuming after step")
    check(result["finished"], "the same command does not go on")


def a_master_that_no_name_service_knows():
    run = Run(WORK / "nowhere", ranks=1, SEALIFT_TRAIN_PARALLEL_METHOD="ddp", RANK="1", WORLD_SIZE="2", MASTER_ADDR="no-such-host.invalid",
              MASTER_PORT="29999", LOCAL_RANK="0")
    run.wait_for(lambda: "waiting for no-such-host.invalid, which is MASTER_ADDR" in run.said(), "nothing is said", 5.5)
    os.kill(run.child.pid, signal.SIGTERM)
    run.ends(-signal.SIGTERM)  # before it trains nothing has to be saved; a rank dies by the signal


def told_before_the_first_step():
    line = "told to end by SIGTERM while no step was under way: ended at once, nothing to save"
    run = Run(WORK / "early-alone", "--width", 1024, "--layers", 12, ranks=1)  # some seconds for its first values
    run.wait_for(lambda: "single process" in run.said(), "it does not start")
    os.kill(run.child.pid, signal.SIGTERM)
    check(run.ends(143, line, seconds=30) is None, "it wrote a result")
    run = Run(WORK / "early-ranks", ranks=1, SEALIFT_TRAIN_PARALLEL_METHOD="ddp", NNODES="2", NODE_RANK="0",
              NPROC_PER_NODE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29871")
    run.wait_for(lambda: "waiting for" in run.said(), "the ranks do not wait for the other host")
    os.kill(run.child.pid, signal.SIGTERM)
    run.ends(143, line, seconds=30)
    check(run.said().count(line) == 1, f"it is said by more than one rank: {run.said()}")


def children_of(pid):
    return [int(each) for each in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def a_rank_that_stands_still():
    run = Run(WORK / "still", "--steps", 96)
    run.wait_for_steps(5)
    slow = children_of(run.child.pid)[1]
    for _ in range(3):
        os.kill(slow, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(slow, signal.SIGCONT)
        time.sleep(0.05)
    result = run.ends(0)
    check(result["losses"] == undisturbed(96), "losses differ after a rank stood still")

    run = Run(WORK / "too-long", "--steps", 100000, "--timeout-seconds", 3)
    run.wait_for_steps(5)
    still = children_of(run.child.pid)[1]
    os.kill(still, signal.SIGSTOP)
    run.wait_for(lambda: "rank 1" in run.said(), "the rank that stands still is not named", 30)
    run.ends(1, seconds=30)


def clocks_that_jump():
    saved = WORK / "jumps-saved"
    run = Run(WORK / "jumps", "--steps", 60, "--checkpoint-folder", saved, "--checkpoint-every", 10, "--time-limit",
              3600, LD_PRELOAD=CLOCK)
    result = run.ends(0)
    check(result["losses"] == undisturbed(60), "losses differ where the clock jumps")
    check(0 < result["seconds"] < 60, f"a run of {result['seconds']} s")


with tempfile.TemporaryDirectory() as folder:
    WORK = pathlib.Path(folder)
    wanted = sys.argv[4:]
    for part in (a_disk_that_is_full_at_a_save, a_quota_that_is_reached, a_folder_that_goes_away,
                 a_disk_on_which_checkpoints_will_not_fit, a_folder_of_logs_that_is_full,
                 a_checkpoint_that_is_damaged, told_to_end, told_on_a_full_disk, out_of_time, told_before_the_first_step, a_master_that_no_name_service_knows,
                 a_rank_that_stands_still, clocks_that_jump):
        if wanted and part.__name__ not in wanted:
            continue
        try:
            part()
            say(part.__name__.replace("_", " "))
        except (SystemExit, OSError, KeyError, ValueError) as error:  # another that fails must not hide what the rest does
            FAILED.append(f"{part.__name__}: {error}")
            say(FAILED[-1])
for each in LEFT_OUT:
    print("left out:", each)
if FAILED:
    sys.exit("FAILED:\n  " + "\n  ".join(each.splitlines()[0] for each in FAILED))
if LEFT_OUT:
    sys.exit(77)
