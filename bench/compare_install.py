#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-install apply` against uv and pip on the same wheels: the torch 2.11 closure, 2.7 GB, 4.8 GB unpacked.
#   compare_install.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_install.py --names          lists the comparisons
# install_*: into nothing, from nothing (no page of the bundle or the wheels in memory, no cache). second_*: one more
# environment where the first one is: ours has its store, uv its cache. Both sides end with everything synced. What a
# side made is removed before its next turn, outside of what is timed: there is no room for all rounds.
# The peers try nothing of what they made, so the bundles compared name no import to try; what the self-test takes is
# measured apart.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import install_limits
from closure import HOME, Cost, begun, create, fetched, locked, race, run, say

NAMES = ["install_vs_uv", "install_vs_pip", "second_vs_uv_warm", "second_vs_pip"]
WANTED = ["torch==2.11.0", "pip"]  # as closure.toml
OUT = HOME / "install"             # all that is made between the rounds
WHEELS = OUT / "wheels"            # the same files as in the bundle, under their names
PREFIX, VENV, CACHE = OUT / "prefix", OUT / "venv", OUT / "uv-cache"
ASIDE = OUT / "aside"              # second environments whose turn is over


def forget():
    """Nothing that was written waits for the disk, and, for root, nothing that was read is in memory."""
    os.sync()
    if os.geteuid() == 0:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def remove(*folders):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def put_aside(folder):
    """Until the end: ext4 looks for new inodes among those removed in the last half minute, one by one."""
    if folder.exists():
        ASIDE.mkdir(exist_ok=True)
        folder.rename(ASIDE / str(len(os.listdir(ASIDE))))


class Closure:
    """The wheels as the peers read them, and what packs them for us."""

    def __init__(self, tools):
        self.tools, self.install = tools, tools / "sealift-install"
        self.lock = locked(tools, "sha256")
        self.fingerprint = (HOME / "keys/root.fingerprint").read_text().strip()
        files = fetched(tools, self.lock)
        for wheel in tomllib.loads(self.lock.read_text())["wheel"]:
            os.link(files / wheel["sha256"], WHEELS / wheel["file"])
        self.uv = shutil.which("uv") or sys.exit("uv is not in PATH")
        self.python = os.path.realpath(sys.executable)
        # The pip of the closure, with its modules compiled; its own environment is not timed.
        self.pip = OUT / "pip/bin/python"
        run([self.python, "-m", "venv", "--without-pip", OUT / "pip"])
        run([self.uv, "pip", "install", "-q", "--compile-bytecode", "--python", self.pip, "--cache-dir", CACHE, "--no-index",
             "--find-links", WHEELS, "pip"])
        remove(CACHE)

    def bundle(self, version, imports, *more):
        """A bundle of this version whose self-test imports these; `more`: "--base", FILE for a delta."""
        lock = OUT / f"{version}.lock.toml"
        text = re.sub(r"(?m)^version = 1$", f"version = {version}", self.lock.read_text(), count=1)
        lock.write_text(re.sub(r"(?m)^imports = .*$", f"imports = {imports}", text, count=1))
        run(create(self.tools, lock, OUT / "bundles", *more), stdout=sys.stderr)
        return OUT / f"bundles/torch-sha256-{version}"

    def apply(self, bundle, *more):
        return [self.install, "apply", bundle, "--prefix", PREFIX, "--fingerprint", self.fingerprint, *more]

    def ours(self, bundle, *more):
        return [self.apply(bundle, *more), ["sync", "-f", PREFIX]]

    def by_uv(self):
        return [[self.uv, "venv", "-q", "--no-config", "--python", self.python, VENV],
                [self.uv, "pip", "install", "-q", "--no-config", "--python", VENV / "bin/python", "--no-index", "--find-links", WHEELS,
                 "--cache-dir", CACHE, *WANTED],
                ["sync", "-f", VENV]]

    def by_pip(self):
        return [[self.python, "-m", "venv", "--without-pip", VENV],
                [self.pip, "-m", "pip", "--python", VENV / "bin/python", "install", "-q", "--no-index", "--find-links", WHEELS,
                 "--no-compile", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action", "ignore", *WANTED],
                ["sync", "-f", VENV]]


def same_torch():
    """Both made what is in the wheels: the largest library is the same bytes."""
    library = "lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"
    run(["cmp", PREFIX / "current" / library, VENV / library])


def beside(about, commands, before):
    """One figure that no comparison has, on stderr."""
    before()
    cost = Cost(*commands)
    say(f"beside it: {about}: {cost.wall:.0f} ms ({cost.cpu:.0f} of processor)")


def compare_install(closure, bundle, name, peer):
    def before(side):
        remove(*([PREFIX] if side == "ours" else [VENV, CACHE]))
        forget()

    race(name, "nothing in memory" if os.geteuid() == 0 else "bundle and wheels in memory: only root can drop them",
         {"ours": closure.ours(bundle, "--self-test", "imports"), "peer": peer}, before)
    same_torch()
    remove(PREFIX, VENV, CACHE)


def compare_second(closure, first, peers):
    """A second generation: a later version of the same entries, of which the store has every byte."""
    remove(PREFIX)
    run(closure.apply(first, "--self-test", "imports"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with (OUT / "inventory.json").open("wb") as out:
        run([closure.install, "inventory", "--prefix", PREFIX], stdout=out)
    remove(first)
    bundle = closure.bundle(2, "[]", "--volume-size", "1G")
    tested = closure.bundle(3, '["torch"]', "--base", OUT / "inventory.json")

    def before(side, clear=put_aside):
        if side == "peer":
            clear(VENV)
        elif (PREFIX / "generations/0002").exists():
            run([closure.install, "switch", "1", "--prefix", PREFIX], stdout=subprocess.DEVNULL)
            put_aside(PREFIX / "generations/0002")
        os.sync()

    for name, peer in peers.items():
        clear = remove if name == "second_vs_pip" else put_aside  # pip makes copies, and there is no room for many
        race(name, "the store and the cache have all", {"ours": closure.ours(bundle, "--self-test", "imports"), "peer": peer},
             lambda side: before(side, clear))
        same_torch()
        remove(VENV, CACHE, ASIDE)
    for depth in "imports", "full":
        beside(f"a second environment with --self-test {depth}", closure.ours(tested, "--self-test", depth), lambda: before("ours"))


def main():
    tools, pattern = begun(NAMES)
    remove(OUT)
    WHEELS.mkdir(parents=True)
    try:
        closure = Closure(tools)
        bundle = closure.bundle(1, "[]", "--volume-size", "1G")
        peers = {"install_vs_uv": closure.by_uv(), "install_vs_pip": closure.by_pip(),
                 "second_vs_uv_warm": closure.by_uv(), "second_vs_pip": closure.by_pip()}
        chosen = {name: peer for name, peer in peers.items() if re.search(pattern, name)}
        for name in [name for name in chosen if name.startswith("install")]:
            compare_install(closure, bundle, name, chosen.pop(name))
        install_limits.measure(WHEELS, OUT)
        if chosen:
            compare_second(closure, bundle, chosen)
    finally:
        remove(OUT)


main()
