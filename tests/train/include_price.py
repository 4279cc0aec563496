#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `#include <sealift/train.hpp>` costs a source on top of LibTorch's own headers.

include_price.py BUILD            a count: with the compiled core, no body and none of the libraries behind bodies is read
include_price.py BUILD ROUNDS     user seconds and peak memory of the compiler, each way of including in turn; -O2

Compiler and flags are those that BUILD compiles the core's one source with.
"""
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

BEHIND_BODIES = ("_inl.hpp", "nlohmann/", "openssl/", "c10d/ProcessGroupGloo.hpp", "ATen/core/dispatch/Dispatcher.h")
WAYS = {"LibTorch alone": "", "declarations": "-DSEALIFT_TRAIN_COMPILED", "header-only": "-USEALIFT_TRAIN_COMPILED"}


def command_of(build):
    """Compiler and flags, without what they compile."""
    entries = json.loads((build / "compile_commands.json").read_text())
    words = next(shlex.split(each["command"]) for each in entries if each["file"].endswith("/train_compiled.cpp"))
    words = words[next(i for i, word in enumerate(words) if word.endswith(("c++", "g++")) or "clang++" in word):]
    kept = [word for word in words[: words.index("-o")] if not word.startswith(("-O", "-DSEALIFT_TRAIN_COMPILED"))]
    return kept + ["-O2"]


def source_of(way, folder):
    path = pathlib.Path(folder) / "include_price.cpp"
    path.write_text("#include <torch/torch.h>\n" + ("#include <sealift/train.hpp>\n" if WAYS[way] else "") + "int main() {}\n")
    return [option for option in [WAYS[way]] if option] + [str(path)]


def headers_of(command, way, folder):
    text = subprocess.run([*command, "-M", *source_of(way, folder)], check=True, capture_output=True, text=True).stdout
    return [word for word in text.replace("\\\n", " ").split() if not word.endswith(":")]


def compile_once(command, way, folder):
    process = subprocess.Popen([*command, "-c", *source_of(way, folder), "-o", os.devnull])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{way}: the compiler failed")
    return used.ru_utime, used.ru_maxrss


def main():
    build = pathlib.Path(sys.argv[1])
    command = command_of(build)
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) == 2:
            alone = set(headers_of(command, "LibTorch alone", folder))
            read = [each for each in headers_of(command, "declarations", folder) if each not in alone]
            faults = [each for each in read if any(part in each for part in BEHIND_BODIES)]
            print(f"sealift/train.hpp reads {len(read)} files that LibTorch's headers do not")
            sys.exit("\n".join(f"a declaration brings {each}" for each in faults) if faults else 0)
        seconds = {way: [] for way in WAYS}
        memory = dict.fromkeys(WAYS, 0)
        for _ in range(int(sys.argv[2])):
            for way in WAYS:
                user, peak = compile_once(command, way, folder)
                seconds[way].append(user)
                memory[way] = max(memory[way], peak)
        for way in WAYS:
            print(f"{way}\t{statistics.median(seconds[way]):.1f} s\t{memory[way] / 2**20:.2f} GiB\t"
                  f"{len(set(headers_of(command, way, folder)))} files")


main()
