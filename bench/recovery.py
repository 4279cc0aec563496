#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What recovery data costs and gives back, on the bundle of the torch 2.11 closure (2.7 GB) with 5 % of it: seconds of
# `create` more, then for scratches that grow until they are too many the bytes lost, the bytes mended and seconds.
#   recovery.py TOOLS [SEED]    TOOLS: the folder with our programs. One line a scratch on stdout, tab-separated:
#   what, chunks lost, bytes lost, bytes mended, seconds of verify, seconds of mend, largest process of mend [MB]
# The damaged bundle is hard links to the good one, but for the volumes that are scratched: they are copies.
import json
import pathlib
import random
import shutil
import subprocess
import sys

from closure import HOME, Cost, create, locked, say

PERCENT = 5


def made(tools):
    """The bundle with recovery data, packed anew beside one without, and what each took."""
    lock, folders = locked(tools, "sha256"), {}
    for name, more in (("plain", []), ("recovery", ["--recovery", f"{PERCENT}%"])):
        out = HOME / f"recovery-{name}"
        shutil.rmtree(out, ignore_errors=True)
        cost = Cost(create(tools, lock, out, "--volume-size", "500M", *more))
        folders[name] = next(out.iterdir())
        say(f"create, {name}: {cost.wall / 1e3:.1f} s, largest process {cost.peak:.0f} MB")
    size = {kind: sum(file.stat().st_size for file in folders["recovery"].glob(f"*.{kind}[0-9]*")) for kind in ("vol", "rec")}
    say(f"{size['rec']} bytes of recovery data for {size['vol']} bytes of payload")
    return folders["recovery"]


def scratched(folder, damaged, marks):
    """A copy of the bundle in which these (volume, offset, length) are overwritten."""
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(folder, damaged, copy_function=lambda a, b: pathlib.Path(b).hardlink_to(a))
    for name in {volume for volume, _, _ in marks}:
        (damaged / name).unlink()
        shutil.copyfile(folder / name, damaged / name)
    for name, offset, length in marks:
        with open(damaged / name, "r+b") as file:
            file.seek(offset)
            file.write(b"\xaa" * length)


def measure(tools, what, folder, marks):
    damaged, into = HOME / "recovery-damaged", HOME / "recovery-mended"
    shutil.rmtree(into, ignore_errors=True)
    scratched(folder, damaged, marks)
    trust = ["--fingerprint", (HOME / "keys/root.fingerprint").read_text().strip()]
    command = [tools / "sealift-install", "verify", damaged, *trust, "--json"]
    found = json.loads(subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["recovery"]
    clock = Cost(["sh", "-c", '"$@" || :', "sh", *command])
    try:
        mend = Cost([tools / "sealift-install", "mend", damaged, *trust, "--into", into])
    except subprocess.CalledProcessError:
        print(what, found["bad_chunks"], found["bad_bytes"], 0, f"{clock.wall / 1e3:.2f}", "refused", "", sep="\t", flush=True)
        return
    for file in into.rglob("*.vol*"):
        if subprocess.run(["cmp", file, folder / file.name]).returncode != 0:
            sys.exit(f"{file} is not what was packed")
    print(what, found["bad_chunks"], found["bad_bytes"], found["bad_bytes"], f"{clock.wall / 1e3:.2f}",
          f"{mend.wall / 1e3:.2f}", f"{mend.peak:.0f}", sep="\t", flush=True)


def main():
    tools, seed = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    folder = made(tools)
    volumes = {file.name: file.stat().st_size for file in sorted(folder.glob("*.vol*"))}
    chance, total = random.Random(seed), sum(volumes.values())
    for share in (0.001, 0.01, 0.04, 0.06):  # one run on one disc
        name = max(volumes, key=volumes.get)
        length = min(int(total * share), volumes[name])
        measure(tools, f"one scratch of {share:.1%}", folder, [(name, (volumes[name] - length) // 2, length)])
    for count in (1, 10, 30, 100):  # sectors of 2048 bytes, anywhere
        marks = []
        for _ in range(count):
            name = chance.choice(list(volumes))
            marks.append((name, chance.randrange(volumes[name] // 2048) * 2048, 2048))
        measure(tools, f"{count} bad sectors", folder, marks)


main()
