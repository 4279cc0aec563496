#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The bytes of a wheel as a patch on the version before it, against those of the whole wheel: what `create --patches`
# carries of it, and `create` without. Every file is made again from the patch and compared.
#   compare_delta.py PROGRAM PATTERN    PROGRAM: sealift-bench-delta
#   compare_delta.py --names            lists the comparisons
# Bytes do not depend on the machine, so there is one round; wheels come from the index once, into build/bench/wheels.
import re
import subprocess
import sys
import tempfile

from closure import HOME, run, say

# name: (package, older version, newer version, what the patch may have of the wheel's bytes at most)
PAIRS = {
    "delta_vs_whole_torch": ("torch", "2.14.0", "2.14.1", 0.18),
    "delta_vs_whole_small": ("requests", "2.32.4", "2.32.5", 0.5),
}


def wheel(package, version):
    folder = HOME / "wheels" / f"{package}-{version}"
    if not list(folder.glob("*.whl")):
        run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", folder,
             f"{package}=={version}"], stdout=sys.stderr)
    return next(folder.glob("*.whl"))


def main():
    if sys.argv[1] == "--names":
        print("\n".join(PAIRS))
        return
    too_large = []
    for name, (package, older, newer, most) in PAIRS.items():
        if not re.search(sys.argv[2], name):
            continue
        with tempfile.TemporaryDirectory(dir=HOME) as scratch:
            result = subprocess.run([sys.argv[1], wheel(package, newer), wheel(package, older), scratch],
                                    check=True, capture_output=True, text=True).stdout.split()
        patch, whole, same, patched, making, applying, memory = result
        say(f"{name}: {package} {older} -> {newer}, {same} files as they were, {patched} patched; "
            f"{making} s to make, {applying} s to apply, {memory} MB with what is mapped")
        print(f"{name}\t{patch}\t{whole}\t{int(whole) / int(patch):.2f}\t0.00", flush=True)
        if int(patch) > most * int(whole):
            too_large.append(name)
    if too_large:
        sys.exit(f"more bytes than they may have: {', '.join(too_large)}")


main()
