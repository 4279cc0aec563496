#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills sealift-install with SIGKILL at random moments of an installation; for any bundle, small or real.

kill_test.py PROGRAM BUNDLE FINGERPRINT KILLS [--work FOLDER] [--seed N]

After each kill: what has a name is whole (every item of the store and of staging/items, every generation, against an
undisturbed installation), and `current` leads to a whole generation or is not there. The next run goes on in the same
prefix; when one ends, its prefix is compared byte by byte with the undisturbed one, and a fresh one is begun.
Delays are uniform up to 1.1 times what a whole installation takes. The work folder needs room for two installations.
"""
import argparse
import hashlib
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

SMALL = 64 << 20  # bytes of a prefix up to which contents are compared after each kill too, and not only at the end


def without_what_differs(path, data, root):
    """Of files that name the time of the installation, or the prefix."""
    if path.endswith(".txt"):  # a receipt's page; its JSON is compared
        return b""
    return re.sub(rb'"(installed|milliseconds)":("[^"]*"|\d+)', b"", data).replace(root.encode(), b"PREFIX")


def differs(path, root):
    place = os.path.relpath(path, root).split(os.sep)[0]
    return os.path.basename(path) == "generation.json" or place == "receipts" or place.startswith("activate")


def describe(path, contents, root):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return ("link", os.readlink(path))
    if kind == stat.S_IFDIR:
        return ("folder", stat.S_IMODE(status.st_mode))
    digest = None
    own = differs(path, root)
    if contents:
        with open(path, "rb") as file:
            if own:
                digest = hashlib.sha256(without_what_differs(path, file.read(), root)).hexdigest()
            else:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ("file", stat.S_IMODE(status.st_mode), None if own else status.st_size, digest)


def tree(root, contents):
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = describe(path, contents, root)
    return found


def parts(root, place):
    folder = os.path.join(root, place)
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


class Kills:
    def __init__(self, options, work):
        self.prefix = os.path.join(work, "prefix")
        self.reference = os.path.join(work, "reference")
        self.command = [options.program, "apply", options.bundle, "--fingerprint", options.fingerprint, "--prefix"]
        begin = time.monotonic()
        subprocess.run(self.command + [self.reference], check=True, stdout=subprocess.DEVNULL)
        self.seconds = time.monotonic() - begin
        self.after = tree(self.reference, True)
        self.contents = sum(entry[2] or 0 for entry in self.after.values() if entry[0] == "file") < SMALL

    def check_part(self, place, name, as_in):
        got = tree(os.path.join(self.prefix, place, name), self.contents)
        want = {
            path[len(as_in) + 1:]: entry for path, entry in self.after.items() if path.startswith(as_in + "/")
        }
        if not self.contents:
            want = {path: entry[:3] + (None,) if entry[0] == "file" else entry for path, entry in want.items()}
        if got != want:
            wrong = sorted(path for path in got.keys() | want.keys() if got.get(path) != want.get(path))
            raise SystemExit(f"{place}/{name} is not whole: {len(wrong)} paths, such as {wrong[0]}")

    def check_after_kill(self):
        for place in ("store", "staging/items"):
            for name in parts(self.prefix, place):
                self.check_part(place, name, "store/" + name)
        for name in parts(self.prefix, "generations"):
            self.check_part("generations", name, "generations/" + name)
        current = os.path.join(self.prefix, "current")
        if os.path.lexists(current) and not os.path.isdir(current):
            raise SystemExit("current leads nowhere")

    def run(self, delay):
        """Whether it was killed; a run that ends must end well."""
        child = subprocess.Popen(self.command + [self.prefix], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, error = child.communicate(timeout=delay)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return True
        if child.returncode != 0:
            raise SystemExit(f"the next run fails with {child.returncode}: {error.decode(errors='replace')}")
        return False

    def check_end(self):
        got = tree(self.prefix, True)
        got["lock"] = self.after["lock"]  # who held it
        if got != self.after:
            wrong = sorted(path for path in got.keys() | self.after.keys() if got.get(path) != self.after.get(path))
            raise SystemExit(f"the result differs: {len(wrong)} paths, such as {wrong[0]}")
        shutil.rmtree(self.prefix)


def main():
    parser = argparse.ArgumentParser(description="kill an installation at random moments")
    parser.add_argument("program")
    parser.add_argument("bundle")
    parser.add_argument("fingerprint")
    parser.add_argument("kills", type=int)
    parser.add_argument("--work")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as own:
        work = options.work or own
        os.makedirs(work, exist_ok=True)
        kills = Kills(options, work)
        killed = ended = 0
        while killed < options.kills:
            if kills.run(random.uniform(0, 1.1 * kills.seconds)):
                killed += 1
                kills.check_after_kill()
                if killed % 10 == 0:
                    print(f"{killed} kills, {ended} runs that ended", file=sys.stderr, flush=True)
            else:
                ended += 1
                kills.check_end()
        kills.run(None)
        kills.check_end()
        print(f"{killed} kills and {ended + 1} whole installations of {kills.seconds:.1f} s: nothing lost")


main()
