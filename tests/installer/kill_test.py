#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills sealift-install at random moments of an installation; for any bundle, small or real.

kill_test.py PROGRAM BUNDLE FINGERPRINT KILLS [--signal KILL|TERM|INT] [--work FOLDER] [--seed N] [--minutes N]

After each kill: what has a name is whole (every item of the store and of staging/items, every generation, against an
undisturbed installation), `current` leads to a whole generation or is not there, `status` says the same, and no child of
the killed program is left. Of SIGTERM and SIGINT it has died with a line about it. The next run goes on in the same
prefix; when one ends, its prefix is compared byte by byte with the undisturbed one, and a fresh one is begun.
Most delays are uniform up to 1.1 times what a whole installation takes. The switch is a moment only, so every fourth
kill waits until the generation's record is written, and falls within what comes after that. The last line tells at
which steps the kills fell. The work folder needs room for two installations; --minutes ends the run early, and says so.
"""
import argparse
import collections
import hashlib
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

AIMED = 4  # of so many kills one is aimed at the switch
SYNCFS = {"x86_64": "306", "aarch64": "267"}.get(os.uname().machine)
SMALL = 64 << 20  # bytes of a prefix up to which contents are compared after each kill too, and not only at the end


def without_what_differs(path, data, root):
    """Of files that name the time of the installation, or the prefix."""
    if path.endswith(".txt"):  # a receipt's page; its JSON is compared
        return b""
    data = re.sub(rb'"(installed|milliseconds)":("[^"]*"|\d+)|\d+ ms"', b"", data)
    return data.replace(root.encode(), b"PREFIX")


def differs(path, root):
    place = os.path.relpath(path, root).split(os.sep)[0]
    return os.path.basename(path) == "generation.json" or place == "receipts" or place == "modulefiles" or \
        place.startswith("activate")


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


def is_in_sync(process):
    """Whether a thread of it waits for the disk."""
    try:
        tasks = f"/proc/{process}/task"
        return any(open(f"{tasks}/{task}/syscall").read().split()[0] == SYNCFS for task in os.listdir(tasks))
    except OSError:  # it has ended, or /proc does not tell
        return False


def handles(process, number):
    """Whether it has begun so far that it answers the signal itself."""
    with open(f"/proc/{process}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def processes_of(folder):
    """What runs a program below `folder`, or names it."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if process != str(os.getpid()) and folder.encode() in open(f"/proc/{process}/cmdline", "rb").read():
                found.append(process)
        except OSError:
            pass
    return found


class Kills:
    def __init__(self, options, work):
        self.prefix = os.path.join(work, "prefix")
        self.reference = os.path.join(work, "reference")
        self.said = os.path.join(work, "said")
        self.program = options.program
        self.signal = signal.Signals["SIG" + options.signal]
        self.command = [options.program, "apply", options.bundle, "--fingerprint", options.fingerprint, "--prefix"]
        self.stages = collections.Counter()
        begin = time.monotonic()
        child = subprocess.Popen(self.command + [self.reference], stdout=subprocess.DEVNULL)
        self.wait_for_record(child, self.reference)
        recorded = time.monotonic()
        if child.wait() != 0:
            raise SystemExit("the undisturbed installation fails")
        self.seconds = time.monotonic() - begin
        self.tail = time.monotonic() - recorded  # from the generation's record to the end
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
        if os.path.exists(self.prefix):
            begun = set(os.listdir(self.prefix)) - {"lock"}  # killed before that, it is no prefix
            status = subprocess.run([self.program, "status", "--prefix", self.prefix], capture_output=True, text=True)
            if status.returncode != (0 if begun else 7):
                raise SystemExit(f"status ended with {status.returncode}, beside {sorted(begun)}: {status.stderr}")
        self.check_nobody_is_left()

    def wait_for_record(self, child, prefix):
        staged = os.path.join(prefix, "staging", str(child.pid), "generation", "generation.json")
        while child.poll() is None and not os.path.exists(staged):
            time.sleep(0.002)

    def stage_of(self, child, in_sync):
        """How far a killed run had come, by what it said and left."""
        staging = os.path.join(self.prefix, "staging", str(child.pid))
        with open(self.said) as file:
            said = file.read()
        if os.path.lexists(os.path.join(self.prefix, "current")):
            stage = "after the switch"
        elif parts(self.prefix, "generations") or os.path.exists(staging + "/generation/generation.json"):
            stage = "naming and switching"
        elif "self-test" in said:
            stage = "self-test"
        elif "building generation" in said:
            stage = "building the generation"
        else:
            stage = "unpacking" if os.path.exists(staging) else "looking"
        return stage + (", in a sync" if in_sync else "")

    def check_nobody_is_left(self):
        for _ in range(50):  # the kernel takes a moment to end them
            left = processes_of(self.prefix)
            if not left:
                return
            time.sleep(0.1)
        raise SystemExit(f"{len(left)} processes of the killed run are still there, such as {left[0]}")

    def check_words(self, returncode, answers):
        with open(self.said) as file:
            said = file.read()
        if returncode != -self.signal:
            raise SystemExit(f"of {self.signal.name} it ended with {returncode}: {said}")
        if not answers and not said:  # it had only just begun
            return
        if self.signal != signal.SIGKILL and said.count("\nstopped; ") != 1:
            raise SystemExit(f"of {self.signal.name} it died without one line of it: {said}")

    def run(self, kill):
        """Whether it was killed; a run that ends must end well."""
        aimed = kill and random.randrange(AIMED) == 0
        with open(self.said, "w") as said:
            child = subprocess.Popen(self.command + [self.prefix], stdout=subprocess.DEVNULL, stderr=said)
        if aimed:
            self.wait_for_record(child, self.prefix)
        begin = time.monotonic()
        try:
            child.wait(random.uniform(0, self.tail if aimed else 1.1 * self.seconds) if kill else None)
        except subprocess.TimeoutExpired:
            in_sync = is_in_sync(child.pid)
            answers = handles(child.pid, self.signal)
            child.send_signal(self.signal)
            child.wait(60)
            if child.returncode == 0:  # it had ended but for its exit
                return False
            self.check_words(child.returncode, answers)
            self.stages[self.stage_of(child, in_sync)] += 1
            return True
        if child.returncode != 0:
            with open(self.said) as said:
                raise SystemExit(f"the next run fails with {child.returncode}: {said.read()}")
        took = time.monotonic() - begin  # a machine that was busy at first would leave us waiting for runs long ended
        if aimed:
            self.tail = max(took, 0.9 * self.tail)
        else:
            self.seconds = max(took, 0.9 * self.seconds)
        return False

    def check_end(self):
        got = tree(self.prefix, True)
        got["lock"] = self.after["lock"]  # who held it
        got["stamps"] = self.after["stamps"]  # inodes and times
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
    parser.add_argument("--signal", choices=["KILL", "TERM", "INT"], default="KILL")
    parser.add_argument("--work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    random.seed(options.seed)
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as own:
        work = options.work or own
        os.makedirs(work, exist_ok=True)
        kills = Kills(options, work)
        killed = ended = 0
        while killed < options.kills and time.monotonic() < end:
            if kills.run(True):
                killed += 1
                kills.check_after_kill()
                if killed % 10 == 0:
                    print(f"{killed} kills, {ended} runs that ended: {dict(kills.stages)}", file=sys.stderr, flush=True)
            else:
                ended += 1
                kills.check_end()
        seconds = kills.seconds
        kills.run(False)
        kills.check_end()
        few = "" if killed == options.kills else f" (of {options.kills}: the time was over)"
        print(f"{killed} kills{few} and {ended + 1} whole installations of {seconds:.1f} s: nothing lost")
        print("the kills fell: " + "; ".join(f"{stage} {count}" for stage, count in kills.stages.most_common()))


main()
