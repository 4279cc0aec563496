#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What this machine hashes, inflates and reads in a second, on stderr: a figure of installing or verifying means little
without it.
    machine_rates.py MEMBERS PROGRAM    the built sealift-bench-members; any large program, whose bytes are inflated
"""
import os
import subprocess
import sys
import tempfile
import zipfile


def main(members, program):
    with tempfile.TemporaryDirectory() as folder:
        wheel = os.path.join(folder, "made.zip")
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for copy in range(4):
                archive.write(program, str(copy))
        lines = subprocess.run([members, wheel], check=True, capture_output=True, text=True).stdout.splitlines()
    rates = dict(line.split("\t") for line in lines[:2])
    rows = [line.split("\t") for line in lines[2:]]
    inflate = sum(int(row[3]) for row in rows) / sum(float(row[4]) for row in rows)
    print(f"machine: {os.cpu_count()} cores; SHA-256 {float(rates['sha256']) / 1e9:.2f} GB/s a core, inflate "
          f"{inflate / 1e9:.2f} GB/s a core (what comes out), memory {float(rates['memory']) / 1e9:.1f} GB/s for all",
          file=sys.stderr)


main(*sys.argv[1:])
