#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# No program or library that we build looks for libraries wherever it is started: no part of an RPATH or RUNPATH is
# empty, relative or below /proc. Once installed, each part begins with $ORIGIN: nothing leads out of the environment.
#   search_paths_test.py BUILD CMAKE
import pathlib
import subprocess
import sys
import tempfile

BUILD, CMAKE = pathlib.Path(sys.argv[1]), sys.argv[2]
TRAINER = ("bin/sealift-train", "bin/sealift-verify")  # what its component installs, where it was built


def search_paths(file):
    lines = subprocess.run(["readelf", "-dW", file], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line[line.index("[") + 1:line.rindex("]")] for line in lines if "(RPATH)" in line or "(RUNPATH)" in line]


def native_files(root):
    for file in sorted(path for name in ("bin", "lib", "libexec") for path in (root / name).rglob("*")):
        if file.is_file() and not file.is_symlink() and file.open("rb").read(4) == b"\x7fELF":
            yield file


def faults(root, installed):
    for file in native_files(root):
        for path in search_paths(file):
            for part in path.split(":"):
                inside = part.startswith(("$ORIGIN", "${ORIGIN}"))
                absolute = part.startswith("/") and not part.startswith(("/proc", "/dev/"))
                if not inside and (installed or not absolute):
                    yield f"{file}: {part!r} in {path[:200]}"


found, count = list(faults(BUILD, False)), sum(1 for _ in native_files(BUILD))
with tempfile.TemporaryDirectory() as prefix:
    installed = 0
    if all((BUILD / name).is_file() for name in TRAINER):
        done = subprocess.run([CMAKE, "--install", BUILD, "--component", "trainer", "--prefix", prefix],
                              capture_output=True, text=True)
        if done.returncode != 0:
            found.append("cmake --install --component trainer: " + (done.stderr or done.stdout)[-300:])
        installed = sum(1 for _ in native_files(pathlib.Path(prefix)))
        if installed < len(TRAINER):
            found.append(f"{installed} native file(s) were installed")
        found += faults(pathlib.Path(prefix), True)
print("\n".join(found[:20]) or f"{count} native files of the build, {installed} that were installed")
sys.exit(1 if found or count == 0 else 0)
