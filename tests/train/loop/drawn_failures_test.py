# SPDX-License-Identifier: Apache-2.0
# Failures of a long job, drawn from a seed: a full disk, SIGTERM, a kill, a time limit, a damaged checkpoint, in any order
# and number, of `run` and of each verb that fine-tunes, on one process, ddp, fsdp and hsdp, each start on a method of its
# own. The job must end with the losses of one that nothing happened to. By hand, as it takes seconds for each:
# ctest -C slow -R drawn_failures.
#   drawn_failures_test.py SEALIFT_TRAIN [FIRST_SEED [COUNT [KIND…]]]    with the Python of torch; PYTHONPATH: the peers
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import made_model as made  # noqa: E402

TRAIN, FIRST, COUNT = sys.argv[1], *(int(given or default) for given, default in zip(
    [*sys.argv[2:4], None, None], (1, 36)))
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(("SEALIFT_TRAIN_", "RANK", "WORLD"))}
ENVIRONMENT.update(SEALIFT_TRAIN_DEVICE="cpu", SEALIFT_TRAIN_THREADS="1", SEALIFT_TRAIN_PYTHON=sys.executable)
STEPS, ROWS = 160, 8  # of a job, of a step that fine-tunes
TINY = ["--layers", "2", "--width", "32", "--heads", "2", "--context", "16", "--global-batch", "32", "--vocabulary", "5",
        "--steps", str(STEPS)]
METHODS = {"none": 1, "ddp": 2, "fsdp": 2, "hsdp": 4}
FINE_TUNES = {  # a kind of job -> the verb, its lines, the tuner
    "sft": ("sft", made.chat_lines, "lora"), "sft whole": ("sft", made.chat_lines, "none"),
    "dpo": ("dpo", made.pair_lines, "lora"), "kto": ("kto", made.label_lines, "lora"),
    "reward": ("reward", made.pair_lines, "lora"), "pretrain": ("pretrain", made.text_lines, "none")}
KINDS = sys.argv[4:] or ["run", *FINE_TUNES]
FAULTS = ("term", "term to all", "kill", "full", "full and term", "full and kill", "late", "damage", "early term")


class Wrong(Exception):
    pass


def check(holds, what):
    if not holds:
        raise Wrong(what)


def words_of(kind, work, out):
    """The job's command without its method, its checkpoints and where they are."""
    if kind == "run":
        return ["run", *TINY, "--out", out]
    verb, lines, tuner = FINE_TUNES[kind]
    data = work / f"{verb}.jsonl"
    if not data.exists():
        made.write_lines(data, lines(48, 5))
    return [verb, "--model", work / "model", "--data", data, "--output_dir", out, "--tuner", tuner, "--lora_dropout", "0",
            "--max_steps", STEPS, "--learning_rate", "0.0005", "--max_length", "128",
            *(["--truncation_strategy", "split"] if verb == "pretrain" else [])]


class Job:
    """One job: its folders on a small disk, and what it was last told to do."""

    def __init__(self, seed, work):
        self.draw, self.work = random.Random(seed), work
        self.kind = self.draw.choice(KINDS)
        self.disk = pathlib.Path(tempfile.mkdtemp(dir=work))
        libc = ctypes.CDLL(None)
        self.mounted = libc.mount(b"none", bytes(self.disk), b"tmpfs", 0, b"size=16m") == 0
        check(self.mounted, "no tmpfs can be mounted here; run it as root")
        self.every, self.kept = self.draw.randint(2, 9), self.draw.randint(1, 3)
        on_disk = self.kind != "run" or self.draw.random() < 0.5
        self.out = (self.disk if on_disk else work) / f"out-{seed}"
        self.words = words_of(self.kind, work, self.out)
        if self.kind == "run":
            self.saved = self.disk / "saved"
            self.words += ["--checkpoint-folder", self.saved, "--checkpoint-every", self.every, "--keep-checkpoints", self.kept]
        else:
            self.saved = self.out / "checkpoints"
            self.words += ["--save_steps", self.every, "--save_total_limit", self.kept]
        self.told = [self.kind]

    def close(self):
        ctypes.CDLL(None).umount2(bytes(self.disk), 2)

    def start(self, *more):
        method = self.draw.choice(sorted(METHODS))
        ranks = METHODS[method]
        words = [] if method == "none" else ["--parallel-method", method, "--ranks", ranks]
        if self.kind != "run":
            words += ["--per_device_train_batch_size", "1", "--gradient_accumulation_steps", ROWS // ranks]
        if method == "hsdp":
            words += ["--shard-size", 2]
        self.told.append(method)
        self.errors = self.work / f"errors-{time.monotonic_ns()}"
        self.child = subprocess.Popen([TRAIN, *map(str, [*self.words, *words, *more])],
                                      stdout=subprocess.DEVNULL, stderr=self.errors.open("w"), env=ENVIRONMENT,
                                      start_new_session=True)

    def said(self):
        return self.errors.read_text()

    def steps_logged(self):
        try:
            return (self.out / "log.jsonl").read_text().count("\n")
        except OSError:
            return 0

    def wait_for_more_steps(self):
        """Until it has done some steps of this start, or has ended."""
        wanted, end = self.steps_logged() + self.draw.randint(1, 40), time.monotonic() + 60
        while self.child.poll() is None and self.steps_logged() < wanted and time.monotonic() < end:
            time.sleep(0.01)

    def ends(self, *codes):
        try:
            code = self.child.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            raise Wrong(f"does not end: {self.said()[-2000:]}") from None
        check(code in codes, f"exit code {code}, expected one of {codes}: {self.said()[-2000:]}")
        return code

    def fill(self):
        with (self.disk / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def whole(self):
        """The steps whose checkpoints are there."""
        return sorted(int(each.name[5:]) for each in self.saved.glob("step-*") if (each / "index.json").exists())

    def disturb(self, fault):
        self.told.append(fault)
        before = self.whole()
        if fault == "damage":
            if len(before) > 1:  # one stays, from which it goes on
                last = self.saved / f"step-{before[-1]:06}"
                victim = self.draw.choice(sorted(last.iterdir()))
                victim.write_bytes(victim.read_bytes()[:-30])
            return
        self.start(*(["--time-limit", "3"] if fault == "late" else []))
        if fault == "late":
            self.ends(0, 124)
            return
        if fault != "early term":
            self.wait_for_more_steps()
        if fault.startswith("full"):
            self.fill()
            had = self.whole()
            time.sleep(self.draw.random() * 0.5)
            check(not had or self.whole() and self.whole()[-1] >= had[-1], f"checkpoints {had} became {self.whole()}")
        with contextlib.suppress(ProcessLookupError):  # it may have finished meanwhile
            if fault.endswith("term"):
                time.sleep(self.draw.random() if fault == "early term" else 0)
                os.kill(self.child.pid, signal.SIGTERM)
            elif fault == "term to all":
                os.killpg(self.child.pid, signal.SIGTERM)
            elif fault.endswith("kill"):
                os.killpg(self.child.pid, signal.SIGKILL)
        if fault == "full":
            (self.disk / "filler").unlink()
            self.ends(0)
        elif fault.endswith("kill"):
            self.ends(0, -signal.SIGKILL)
        else:
            # Before it handles the signal at all it dies by it.
            self.ends(0, 143, *([-signal.SIGTERM] if fault == "early term" else []), *([1] if "full" in fault else []))
        (self.disk / "filler").unlink(missing_ok=True)
        check(not before or self.whole(), f"{before} were there, and none is left")


@functools.cache
def undisturbed(kind, work):
    out = work / f"undisturbed-{kind}"
    words = words_of(kind, work, out)
    if kind != "run":
        words += ["--per_device_train_batch_size", "1", "--gradient_accumulation_steps", ROWS, "--save_strategy", "no"]
    subprocess.run([TRAIN, *map(str, words)], check=True, env=ENVIRONMENT, capture_output=True)
    return json.loads((out / "result.json").read_text())["losses"]


def one(seed, work):
    job = Job(seed, work)
    expected = undisturbed(job.kind, work)
    try:
        for _ in range(job.draw.randint(1, 5)):
            job.disturb(job.draw.choice(FAULTS))
        job.start()
        job.ends(0)
        result = json.loads((job.out / "result.json").read_text())
        check(result["finished"] and result["steps"] == STEPS, f"not finished: {result}")
        found = max(abs(a - b) / max(abs(b), 0.1) for a, b in zip(result["losses"], expected, strict=True))
        check(found < 1e-4, f"the losses differ by {found}")
        check(len(job.whole()) <= job.kept, f"kept are {job.whole()}")
        print(f"{seed}: {', '.join(job.told)}: good", flush=True)
        return True
    except (Wrong, OSError, ValueError) as error:
        print(f"{seed}: {', '.join(job.told)}: FAILED: {error}", flush=True)
        return False
    finally:
        if job.child.poll() is None:
            os.killpg(job.child.pid, signal.SIGKILL)
        job.close()


with tempfile.TemporaryDirectory() as folder:
    made.make_model(pathlib.Path(folder) / "model")
    failed = [seed for seed in range(FIRST, FIRST + COUNT) if not one(seed, pathlib.Path(folder))]
if failed:
    sys.exit(f"FAILED: seeds {failed}")
