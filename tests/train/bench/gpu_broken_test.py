#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh broken on purpose, with programs and peers that are made up and compute nothing: each break fails its part by
# name with exit status 1, the page says what it was, and the figures of all other parts are on it.
#   gpu_broken_test.py ROOT    with the Python beside torch
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv[1])
TRAIN = """#!/usr/bin/env python3
import json, os, pathlib, signal, subprocess, sys
asked = " ".join(sys.argv[1:])
broken = os.environ["BREAK"].split(",")
if sys.argv[1] == "check":
    sys.exit("losses differ by 2e-4" if "differs" in broken and "1e-4" in asked else 0)
out = pathlib.Path(sys.argv[[i for i, word in enumerate(sys.argv) if word in ("--out", "--output-dir")][-1] + 1])
out.mkdir(parents=True, exist_ok=True)
if sys.argv[1] == "run":
    if "killed" in broken and "mixed" in asked:
        os.kill(os.getppid(), signal.SIGKILL)
    if "hangs" in broken and "mixed" in asked:
        subprocess.Popen(["sleep", os.environ["SLEEP"]], start_new_session=True).wait()
    print("a run's figures"); sys.exit(0)
loss = {"wrong loss": 5.0001, "nan": float("nan")}.get(broken[0], 5.00001)
which, _, share = broken[0].partition(" off by ")
losses = [5 * (1 + float(share)) if which == "first" else loss, 4 * (1 + float(share)) if which == "last" else 4.0]
if "own differs" in broken and "--own-kernels true" in asked:
    losses[0] = 5.1
(out / "result.json").write_text(json.dumps({"losses": losses, "monitor": {"peak_host_memory_bytes": 2**20},
                                            "device": {}, "torch_version": "0"}))
steps = int(sys.argv[sys.argv.index("--max-steps") + 1])
(out / "log.jsonl").write_text('{"tokens_per_second": 200.0}\\n' * steps)
if "BENCH_PROFILE" in os.environ:
    lines = ["aten::mm\\tCPU\\t%d\\t%d\\t1\\naten::_fused_adamw_\\tCPU\\t%d\\t%d\\t1\\n" % (at, at + 3, at + 5, at + 7) for at in range(0, 10 * steps, 10)]
    open(os.environ["BENCH_PROFILE"], "w").write("".join(lines))
"""
PEERS = """
import os
def on_ranks(options, context, count, work=None):
    if work and os.environ["BREAK"] == "rubbish":
        os.write(1, b'{"name": "all_red')
        os.kill(os.getpid(), 9)
    if work:
        wrong = 3 if "wrong sum" in os.environ["BREAK"] else 0
        return [{"name": "all_reduce float32", "ranks": count, "mib": 1, "ms": 2.0, "gb_per_second": 0.5, "wrong": wrong}], None
    why = "rank 1 ended with 1: OSError: model is missing" if "peer" in os.environ["BREAK"] and options.method == "ddp" else None
    return [{"ms_per_step": 1.0, "tokens_per_second": 100, "peak_mib": 7, "first_loss": 5.0, "last_loss": 4.0}], why
def lacks(options): return os.environ["BREAK"] == "no peers"
def forking(): return None
class here:
    class Process:
        exitcode = 0
        def __init__(self, target, args): self.target, self.args = target, args
        def start(self): self.target(*self.args)
        def join(self): pass
def prepared(backend): return here
def make(shape, folder): raise SystemExit("not asked for")
class token_table(list):
    def view(self, *_): return self
    def tolist(self): return list(self)
def token_rows(options, vocabulary): return token_table([[1] * options.time] * options.rows * options.steps)
"""


def lay_out(folder):
    """A checkout whose programs are made up; (its gpu.sh, its build folder)."""
    shutil.copytree(ROOT / "bench", folder / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "build").mkdir()
    (folder / "build/prerequisites").symlink_to(ROOT / "build/prerequisites")
    (folder / "bench/peers.py").write_text((ROOT / "bench/peers.py").read_text().split('if __name__ == "__main__"')[0] + PEERS)
    (folder / "bench/compare_training.py").write_text('print("llama_pure_vs_eager\\t1.0\\t2.0\\t2.0\\t0.1")\n')
    programs = folder / "built/bin"
    programs.mkdir(parents=True)
    for name, text in (("staging_test", "#!/bin/sh\necho all passed; case $BREAK in *test*) exit 3;; esac\n"), ("sealift-train", TRAIN),
                       ("sealift-bench-profile", TRAIN)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = (folder / "bench/gpu.sh").read_text()
    assert "log=$(mktemp -d)\n" in script
    (folder / "bench/gpu.sh").write_text(script.replace(
        "log=$(mktemp -d)\n", "log=$(mktemp -d)\nmkdir $log/model\necho '{\"vocab_size\": 9}' >$log/model/config.json\n"))
    return folder / "bench/gpu.sh", folder / "built"


def start(script, build, broken, only="", tiny=True, **more):
    page = build.parent / "page.md"
    command = [script, "--device", "cpu", *(["--tiny"] if tiny else []), "--build", build, "--out", page, *(["--only", only] if only else [])]
    return page, subprocess.Popen(command, env=dict(os.environ, BREAK=broken, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


FIGURES = {"tests": "all passed", "trainer_fp32": "fp32: passed", "trainer_mixed": "mixed: passed", "trainer_shared": "share a device: passed",
           "collectives": "| `all_reduce float32` | 2 | 1 | 2.0 | 0.5 | right |", "llama": "| `llama_pure_vs_eager` | 1.0 | 2.0 | 2.0 | 0.1 |",
           "tuning": "| `lora_plain_compiled` | 1 | 2 x 32 | fp32 | 1.0 | 100 | 7 | 5.0000000 | 2.00 |",
           "tuning_own": "| `lora_plain_own` | 1 | 2 x 32 | fp32 | 320.0 | 200 | 1 | 5.0000100 | 1.00 |"}


def check(script, build, broken, parts, said, on_page, kept=(), only="", absent=(), **more):
    """`parts` fail, these alone, and say so; the page has the figures of all others but the `absent`, and of those failed
    ones that are `kept`."""
    page, running = start(script, build, broken, only, **more)
    _, stderr = running.communicate(timeout=100)
    text = page.read_text()
    assert running.returncode == (1 if parts else 0), (broken, running.returncode, stderr)
    assert (f"these parts failed: {parts};" in stderr) == bool(parts), (broken, stderr)
    for each in said:
        assert each in stderr, (broken, each, stderr)
    for name, figure in FIGURES.items():
        if not only or name in only.split(","):
            assert (figure in text) == (name not in [*parts.split(), *absent] or name in kept), (broken, name, text)
    for each in on_page:
        assert each in text, (broken, each, text)


RACES = "tuning_exact,tuning_lora,tuning_qlora,tuning_full"  # in fp32, bf16, bf16 and mixed: what a GPU runs, not in small


def check_races(script, build, broken, parts):
    """Of all races `parts` fail, these alone."""
    model = script.parent.parent / "build/bench/qwen1.5b"
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text('{"vocab_size": 9}')
    page, running = start(script, build, broken, RACES, tiny=False)
    _, stderr = running.communicate(timeout=100)
    assert running.returncode == (1 if parts else 0), (broken, running.returncode, stderr)
    assert (f"these parts failed: {parts};" in stderr) == bool(parts), (broken, stderr)
    if not parts:
        text = page.read_text()
        for row in ("lora_plain_ours` | 1 | 1 x 512 | fp32", "lora_fsdp_ours` | 2 | 4 x 2048 | bf16", "qlora_ddp_ours` | 2 | 4 x 2048 | bf16",
                    "full_fsdp_ours` | 2 | 2 x 2048 | mixed"):
            assert row in text, (row, text)


def test_race_bounds():
    """Fine-tuning: a first or last loss that is another by more than rounding fails, in each precision, and by less does not."""
    import fine_tuning
    for precision, of_first, of_last in (("fp32", 1e-5, 1e-4), ("mixed", 1e-2, 2e-2), ("bf16", 1e-2, 5e-2)):
        def failed(first, last, tuner="lora"):
            ours = {"name": f"{tuner}_plain_ours", "first_loss": 5 * (1 + first), "last_loss": 4 * (1 + last)}
            return fine_tuning.held([{"name": "lora_plain_eager", "first_loss": 5.0, "last_loss": 4.0}, ours], precision)
        assert failed(0.9 * of_first, -0.9 * of_last) == [], precision
        for first, last in ((1.1 * of_first, 0), (0, 1.1 * of_last), (0, -1.1 * of_last), (float("nan"), 0), (0, float("nan"))):
            assert failed(first, last) == ["lora_plain_ours"], (precision, first, last)
        assert failed(0.5, 0.5, "full") == []  # another model


def test_told_to_end(script, build):
    """SIGTERM ends the part with all that it has started, the page says so, and nothing further begins."""
    page, running = start(script, build, "hangs", "trainer_fp32,trainer_mixed,llama", SLEEP="98764")
    for line in running.stderr:
        if "gpu.sh: trainer_mixed" in line:
            break
    while not strays("98764"):
        assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    _, stderr = running.communicate(timeout=60)
    assert running.returncode == 143 and "told to end by SIGTERM" in stderr and not strays("98764"), (running.returncode, stderr)
    text = page.read_text()
    assert FIGURES["trainer_fp32"] in text and "mixed: **failed** (told to end)" in text, text
    assert "against Python: **was not run**" in text, text


def strays(seconds):
    """Processes of `sleep SECONDS`."""
    def command(folder):
        try:
            return (folder / "cmdline").read_bytes().split(b"\0")[:2]
        except OSError:
            return []
    return [each.name for each in pathlib.Path("/proc").glob("[0-9]*") if command(each) == [b"sleep", seconds.encode()]]


sys.path.insert(0, str(ROOT / "bench"))
test_race_bounds()
with tempfile.TemporaryDirectory() as name:
    script, build = lay_out(pathlib.Path(name))
    check(script, build, "", "", ["gpu.sh: wrote", "lora_plain_own: ran without kernels of its own: "], ["| `lora_plain_ours` | 1 |", "| `lora_plain_ours` | 2 | 0 | 0 | 50% |"])
    check(script, build, "test,killed,wrong sum,peer", "tests trainer_mixed collectives tuning",
          ["tests exited with 3", "gpu.sh: ended by signal 9", "failed: all_reduce float32 of 2 ranks", "failed: full_ddp_eager"],
          ["Tests: **failed** (exit status 3)", "mixed: **failed** (killed)", "| **3 are wrong** |", "tuning: **failed** (exit status 1)",
           "**failed**: rank 1 ended with 1: OSError: model is missing |"], ["tests", "tuning"])
    for broken, loss in (("wrong loss", "5.0001"), ("nan", "nan")):
        check(script, build, broken, "tuning", [f"lora_plain_ours {loss}"], ["tuning: **failed**"], ["tuning"], "tests,tuning")
    check(script, build, "own differs", "tuning_own", ["lora_plain_own 5.1"], ["tuning_own: **failed**"],
          only="tests,tuning_own")
    check(script, build, "hangs", "trainer_mixed", ["not done after 2 s"], ["mixed: **failed** (not done in time)"],
          only="trainer_fp32,trainer_mixed,llama", GPU_SECONDS_trainer_mixed="2", SLEEP="98765")
    assert not strays("98765")
    test_told_to_end(script, build)
    check(script, build, "differs", "trainer_fp32", ["losses differ by 2e-4", "gpu.sh: failed: check"], ["fp32: **failed** (exit status 1)"],
          only="trainer_fp32,trainer_mixed")
    check(script, build, "rubbish", "collectives", ["gpu.sh: ended by signal 9"], ["over Gloo: **failed** (killed)"], only="tests,collectives,llama")
    check(script, build, "no peers", "", ["these parts were left out: tuning;"], ["tuning: **left out**"], only="llama,tuning", absent=["tuning"])
    check(script, build, "", "lama", ["there is no part 'lama'; use some of tests trainer_fp32"], [], only="tests,lama")
    check_races(script, build, "", "")
    for broken, parts in (("last off by 0.03", "tuning_exact tuning_full"), ("first off by 0.02", RACES.replace(",", " "))):
        check_races(script, build, broken, parts)
    (build / "bin/staging_test").unlink()
    check(script, build, "", "tests", ["staging_test: No such file"], ["Tests: **failed** (a program is missing)"], only="tests,llama")
    (script.parent / "gpu_page.py").write_text("raise OSError('disk full')")
    _, running = start(script, build, "", "llama")
    assert "these parts failed: page;" in running.communicate(timeout=60)[1] and running.returncode == 1
