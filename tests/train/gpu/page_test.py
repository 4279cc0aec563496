#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What bench/gpu.sh does with what its parts say, without any of its programs: losses held by the first step and the
# curve, and bench/GPU.md made of the figures.
#   page_test.py ROOT    with the Python beside torch
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(sys.argv[1])


def functions():
    """compare_training.py without its last line, which runs it."""
    source = (ROOT / "bench/compare_training.py").read_text()
    assert source.endswith("\nmain()\n")
    module = types.ModuleType("compare_training")
    module.__file__ = str(ROOT / "bench/compare_training.py")
    exec(compile(source[:-len("main()\n")], module.__file__, "exec"), vars(module))
    return module


def refusal(module, comparison, ours, peer):
    try:
        module.hold_losses(comparison, ours, peer)
    except SystemExit as error:
        return str(error)
    return ""


def test_losses():
    module = functions()
    llamas = {each.name: each for each in module.comparisons_of_llama()}
    pure, mixed = llamas["llama_pure_vs_eager"], llamas["llama_mixed_vs_eager"]
    drifted = [3.0, 2.9, 2.5], [3.0, 2.9, 2.5 * 1.045]
    assert refusal(module, pure, *drifted) == ""
    assert "whole curve differ by 4.3e-02; expected at most 0.005" in refusal(module, mixed, *drifted)
    assert "first step differ by 1.0e-04; expected at most 1e-05" in refusal(module, mixed, [3.0003, 2.9], [3.0, 2.9])
    assert refusal(module, mixed, [3.00001, 2.9], [3.0, 2.9]) == ""
    assert "first step differ by 1.0e-02" in refusal(module, pure, [3.03, 2.9], [3.0, 2.9])
    for broken in ([math.nan, 2.9], [3.0, math.nan]):
        assert refusal(module, pure, broken, [3.0, 2.9]), broken
        assert refusal(module, mixed, [3.0, 2.9], broken), broken


def test_one_failure_of_many():
    module = functions()
    tried = []

    def race(_program, comparison, _fused):
        tried.append(comparison.name)
        if comparison.name == "llama_pure_vs_eager":
            raise SystemExit("rank 0 ended")
        if comparison.name == "llama_mixed_vs_compile":
            raise OSError("no compiler")

    module.race, module.LLAMA, module.DEVICE = race, "llama_tiny", "cpu"
    arguments, sys.argv = sys.argv, ["", "program", "^llama_"]
    try:
        module.main()
        raise AssertionError("a failure was lost")
    except SystemExit as error:
        assert str(error) == "2 of 4 comparisons failed: llama_pure_vs_eager, llama_mixed_vs_compile", error
    finally:
        sys.argv = arguments
    assert len(tried) == 4, tried


def test_page():
    made = subprocess.run([sys.executable, ROOT / "bench/gpu_page.py", "--earlier"], check=True, capture_output=True, text=True).stdout
    page = (ROOT / "bench/GPU.md").read_text()
    assert made in page or made.split("\n", 3)[3] in page, "make bench/GPU.md anew: bench/gpu_page.py --earlier >bench/GPU.md"
    assert "0c66bee" in page and "2026-11-27" in page and "Not measured since 0c66bee" in page


def test_script():
    """Each part fails but one: all are run, each is named, and the page has what the others said."""
    with tempfile.TemporaryDirectory() as folder:
        programs = pathlib.Path(folder) / "bin"
        programs.mkdir()
        for name, text in (("staging_test", "echo 3 cases failed; exit 3"), ("sealift-bench-training", "exit 1"),
                           ("sealift-train", 'echo "$1 was asked"; case "$*" in *mixed*) exit 5;; esac')):
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        page = pathlib.Path(folder) / "page.md"
        here = dict(os.environ, PYTHONPATH="")  # no transformers
        ended = subprocess.run([ROOT / "bench/gpu.sh", "--device", "cpu", "--tiny", "--build", folder, "--out", page],
                               env=here, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 1, ended
        assert "gpu.sh: these parts failed: tests trainer_mixed llama; " in ended.stderr, ended.stderr
        assert "gpu.sh: these parts were left out: peers; " in ended.stderr, ended.stderr
        assert "this Python has no transformers and no peft: install" in ended.stderr, ended.stderr
        assert "gpu.sh: failed: mixed_cpu mixed" in ended.stderr, ended.stderr
        assert "4 of 4 comparisons failed" in ended.stderr, ended.stderr
        text = page.read_text()
        for said in ("Tests: **failed** (exit status 3)", "3 cases failed", "here, fp32: passed", "check was asked",
                     "here, mixed: **failed**", "by itself, peers: **left out**", "against Python: **failed**"):
            assert said in text, (said, text)


test_script()
test_losses()
test_one_failure_of_many()
test_page()
