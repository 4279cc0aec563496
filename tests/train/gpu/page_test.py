#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What is held in bench/gpu.sh's Llamas, by the first step and the curve, and bench/GPU.md made of the figures. What gpu.sh
# does with parts that fail is in bench/gpu_broken_test.py.
#   page_test.py ROOT    with the Python beside torch
import math
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

ROOT = pathlib.Path(sys.argv[1])


def functions():
    """compare_training.py, which runs nothing when it is imported."""
    sys.path.insert(0, str(ROOT / "bench"))
    import compare_training

    return compare_training


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
    compiled = llamas["llama_mixed_vs_compile"]
    for each in (pure, compiled):
        assert refusal(module, each, [3.0 * 1.004, 2.9], [3.0, 2.9]) == ""
        assert "first step differ by 6.0e-03; expected at most 0.005" in refusal(module, each, [3.0 * 1.006, 2.9], [3.0, 2.9])
    assert "whole curve differ by 6.0e-03; expected at most 0.005" in refusal(module, compiled, [3.0, 2.9 * 1.006], [3.0, 2.9])
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


test_losses()
test_one_failure_of_many()
test_page()
