#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What the package kernels itself chooses: writes variants.txt beside it anew, from made repositories and made
# machines, asking each Python that is named, which has one release of kernels installed.
#   variant_answers.py PYTHON... > variants.txt
# Lines: loader TAB torch TAB abi TAB backend TAB tvm-ffi TAB arch TAB variants TAB the chosen one, or "-".
import json
import random
import subprocess
import sys

CHOOSE = r"""
import json, sys
from packaging.version import Version
import kernels, kernels.variants as v
from kernels.backends import parse_backend
for line in sys.stdin:
    torch, cxx11, backend, ffi, arch, names = json.loads(line)
    variants = []
    for name in names:
        try:
            variants.append(v.parse_variant(name))
        except Exception:
            pass
    found = v._resolve_variant_for_system(
        variants=variants, selected_backend=parse_backend(backend), cpu=arch, os="linux",
        torch_version=Version(torch) if torch != "-" else None, torch_cxx11_abi=cxx11,
        tvm_ffi_version=Version(ffi) if ffi != "-" else None)
    found = found[0] if isinstance(found, tuple) else found
    print(kernels.__version__, found[0].variant_str if found else "-", sep="\t")
"""

draw = random.Random(20261128)
FRAMEWORKS = ["torch29", "torch210", "torch211", "torch29-cxx11", "torch210-cxx11", "torch210-cxx98", "torch28-cxx98",
              "torch-stable-abi28", "torch-stable-abi29", "torch-stable-abi210", "torch-stable-abi212", "tvm-ffi01",
              "tvm-ffi02"]
BACKENDS = ["cpu", "cu118", "cu126", "cu128", "cu129", "cu130", "cu132", "rocm64", "xpu20252", "cann81", "metal"]
ODD = ["torch-cpu", "torch-cuda", "torch-universal", "torch-npu", "torch-rocm", "torch", "torch211", "x",
       "torch211-cu128-x86_64", "torch211-cxx17-cu128-x86_64-linux", "torch2-cu128-x86_64-linux",
       "torch211-cu-x86_64-linux", "torch211-cu128-x86_64-linux-more", "torch211-cu128-x86_64-windows",
       "torch-stable-abi-cu128-x86_64-linux", "torch-stable-abi", "tvm-ffi-cu128-x86_64-linux", "tvm", "torch--"]


def repository():
    names = {f"{draw.choice(FRAMEWORKS)}-{draw.choice(BACKENDS[:7] if draw.random() < 0.8 else BACKENDS)}-"
             f"{'x86_64' if draw.random() < 0.8 else 'aarch64'}-linux" for _ in range(draw.randrange(0, 14))}
    return sorted(names | set(draw.sample(ODD, draw.randrange(0, 4))))


cases = [[draw.choice(["2.8", "2.9", "2.10", "2.11", "-"]), draw.random() < 0.8,
          draw.choice(["cpu", "cu126", "cu128", "cu129", "cu130", "rocm64"]), draw.choice(["-", "0.1", "0.2"]),
          draw.choice(["x86_64", "x86_64", "aarch64"]), repository()] for _ in range(110)]
text = "".join(json.dumps(case) + "\n" for case in cases)
for python in sys.argv[1:]:
    said = subprocess.run([python, "-W", "ignore", "-c", CHOOSE], input=text, capture_output=True, text=True, check=True)
    for case, line in zip(cases, said.stdout.splitlines(), strict=True):
        loader, chosen = line.split("\t")
        torch, cxx11, backend, ffi, arch, names = case
        print(loader, torch, "cxx11" if cxx11 else "cxx98", backend, ffi, arch, " ".join(names) or "-", chosen, sep="\t")
