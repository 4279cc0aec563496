#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh --device cpu --tiny with the real programs and transformers: each part passes and has its figures on the page,
# and what sealift-train sft learns is what transformers and PEFT learn (gpu.sh holds their losses together).
#   gpu_script_test.py ROOT SEALIFT_TRAIN OTHER_PROGRAMS...    of one folder; with the Python beside torch
import importlib.util
import math
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True
ROOT, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).parent.parent


def peers():
    spec = importlib.util.spec_from_file_location("peers", ROOT / "bench/peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_first_losses():
    runs = [{"name": name, "first_loss": loss} for name, loss in (("a", 5.0), ("b", 5.00004), ("c", 5.0006), ("d", math.nan))]
    assert peers().apart(runs, 1e-5) == ["c", "d"]
    assert peers().apart(runs, 1e-2) == ["d"]


def test_counts():
    """By hand: two threads, an operator within another, a copy, a read; on a GPU kernels that overlap, and waits."""
    spec = importlib.util.spec_from_file_location("step_profile", ROOT / "bench/step_profile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    on_cpu = [("aten::linear", "CPU", 0, 50, 1), ("aten::mm", "CPU", 10, 40, 1), ("aten::copy_", "CPU", 20, 60, 2),
              ("aten::_local_scalar_dense", "CPU", 60, 80, 1), ("autograd::engine", "CPU", 0, 100, 1)]
    assert module.counted(on_cpu, 1, 100e-9, "cpu") == {"launches": 3, "copies": 1, "waits": 1, "busy": 0.8}
    on_gpu = [("gemm", "CUDA", 0, 30, 7), ("add", "CUDA", 20, 40, 8), ("Memcpy DtoD", "CUDA", 50, 60, 7), ("aten::mm", "CPU", 0, 90, 1),
              ("cudaStreamSynchronize", "CPU", 90, 100, 1), ("cudaLaunchKernel", "CPU", 1, 2, 1)]
    assert module.counted(on_gpu, 2, 100e-9, "cuda") == {"launches": 1, "copies": 0.5, "waits": 0.5, "busy": 0.5}


def test_refusals(folder):
    """One line that says what to do, before anything runs."""
    (folder / "config.json").write_text("{}")
    refused = ((["--rows", "3"], "use a multiple of 2"), (["--steps", "3"], "use at least 4"),
               (["--time", "1"], "use at least 2"), (["--methods", "fsdp3"], "'fsdp3' is unknown; use some of plain,ddp,"),
               (["--device", "cuda"], "torch sees no GPU; use --device cpu"))
    environment = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ":".join(sys.path)}
    running = [subprocess.Popen([sys.executable, ROOT / "bench/peers.py", folder, "--device", "cpu", *arguments], stderr=subprocess.PIPE,
                                text=True, env=environment) for arguments, _ in refused]
    for each, (arguments, said) in zip(running, refused):
        stderr = each.communicate()[1]
        assert each.returncode == 2 and said in stderr, (arguments, each.returncode, stderr)


def test_left_out(folder):
    """A Python without transformers: status 77, and what to do."""
    for tuner, said in (("lora", "no transformers and no peft: install it beside torch"), ("full", "no transformers: install it beside torch")):
        ended = subprocess.run([sys.executable, ROOT / "bench/peers.py", folder, "--tuners", tuner], capture_output=True, text=True, env={})
        assert ended.returncode == 77 and said in ended.stderr, ended


def test_failed_run():
    """A run that fails or hangs is a line with its reason."""
    module, context = peers(), multiprocessing.get_context("fork")
    options = types.SimpleNamespace(tuner="lora", method="ddp", mode="eager", ranks=2, rows=2, time=8, precision="fp32", device="cpu", timeout=60)

    def fails(_options, _store):
        if os.environ["RANK"] == "1":
            raise OSError("model.safetensors is missing")
        signal.pause()

    module.run_rank = fails
    run = module.race(options, context)
    assert (run["name"], run["failed"]) == ("lora_ddp_eager", "rank 1 ended with 1: OSError: model.safetensors is missing"), run
    module.run_rank, options.timeout = lambda _options, _store: signal.pause(), 0
    assert module.race(options, context)["failed"] == "not done after 0 s: it said nothing"


def test_script(folder):
    page = folder / "page.md"
    ended = subprocess.run([ROOT / "bench/gpu.sh", "--device", "cpu", "--tiny", "--build", BUILD, "--out", page],
                           capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4000:]
    text = page.read_text()
    assert "failed" not in text.replace("0 failed", "") and "left out" not in text and "was not run" not in text, text
    assert text.count(": passed\n") == 8, text
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    collectives = [f"{kind} {dtype}" for kind in ("all_reduce", "all_gather", "reduce_scatter") for dtype in ("float32", "bfloat16")]
    theirs = ["lora_plain_compiled", "lora_fully_shard_eager", "full_ddp_eager", "full_fsdp1_eager", "qlora_plain_eager"]
    ours = ["lora_plain_ours", "lora_fsdp_ours", "full_ddp_ours", "full_fsdp_ours", "qlora_plain_ours"]
    assert [row for row in dict.fromkeys(rows)] == [*collectives, "llama_pure_vs_eager", "llama_mixed_vs_compile", *theirs, *ours, "lora_plain_own"], rows
    assert rows[-4:] == ["lora_plain_ours", "lora_plain_own"] * 2, rows  # their figures, and the profiled ones
    assert rows[-11:-4] == [*theirs, "lora_plain_ours", "qlora_plain_ours"], rows
    assert "lora_plain_own: ran without kernels of its own: they are for NVIDIA's cards, and this device is cpu" in text, text


with tempfile.TemporaryDirectory() as name:
    test_first_losses()
    test_counts()
    test_refusals(pathlib.Path(name))
    test_left_out(pathlib.Path(name))
    test_failed_run()
    test_script(pathlib.Path(name))
