#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-install image` against mksquashfs, and a start of Python from the image against one from unpacked files: the
# torch 2.11 closure, 4.8 GB unpacked.
#   compare_image.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_image.py --names          lists the comparisons
# image_vs_mksquashfs: the same tree, block size, compression and threads, all read from memory, both synced; ours also
# holds each file to its digest, and gives the same bytes again. import_*: `import torch`, warm; ours from the image, by
# FUSE with each read checked, or by the kernel's mount; the peer is the prefix that apply made. import_*_cold: the same
# with what it reads gone from the page cache, and with mounting.
import os
import pathlib
import re
import shutil
import subprocess
import sys

from closure import HOME, begun, create, locked, race, run, say

NAMES = ["image_vs_mksquashfs", "import_by_fuse", "import_by_fuse_cold", "import_by_kernel", "import_by_kernel_cold"]
OUT = HOME / "image"
PREFIX, IMAGE, PEERS, SHOWN, PAGES = OUT / "prefix", OUT / "image", OUT / "peers", OUT / "shown", OUT / "pycache"


def remove(*paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def importing(root):
    return [["env", f"PYTHONPYCACHEPREFIX={PAGES}", root / "bin/python3", "-c", "import torch"]]


def out_of_memory(*roots):
    """Gives up the files' pages; nobody else's."""
    for path in [path for root in roots for path in (root.rglob("*") if root.is_dir() else [root])]:
        if path.is_file() and not path.is_symlink():
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make_prefix(tools):
    lock = locked(tools, "sha256")
    run(create(tools, lock, OUT / "bundles"), stdout=sys.stderr)
    fingerprint = (HOME / "keys/root.fingerprint").read_text().strip()
    run([tools / "sealift-install", "apply", OUT / "bundles/torch-sha256-1", "--prefix", PREFIX, "--fingerprint",
         fingerprint, "--self-test", "imports"], stdout=sys.stderr)
    remove(OUT / "bundles")


def compare_writing(install):
    """mksquashfs reads what the image holds: the generation without its record."""
    threads = str(os.cpu_count())
    ours = [[install, "image", PREFIX, "-o", IMAGE, "--threads", threads], ["sync", "-f", OUT]]
    peer = [["mksquashfs", (PREFIX / "current").resolve(), PEERS, "-comp", "zstd", "-Xcompression-level", "1", "-b", "128K",
             "-processors", threads, "-all-root", "-no-xattrs", "-quiet", "-no-progress", "-e", "generation.json"],
            ["sync", "-f", OUT]]
    sizes = {}

    def forget(_):
        """There is room for one of them at a time."""
        sizes.update({path.name: path.stat().st_size for path in (IMAGE, PEERS) if path.exists()})
        remove(IMAGE, pathlib.Path(f"{IMAGE}.chunks"), PEERS)

    race("image_vs_mksquashfs", "the tree in memory", {"ours": ours, "peer": peer}, forget)
    forget("")
    say(f"image_vs_mksquashfs: bytes, ours/peer: {sizes[IMAGE.name]}/{sizes[PEERS.name]}")


def compare_imports(install, pattern):
    if not IMAGE.exists():
        run([install, "image", PREFIX, "-o", IMAGE], stdout=sys.stderr)
    remove(PEERS)
    digest = subprocess.run(["sha256sum", f"{IMAGE}.chunks"], check=True, capture_output=True, text=True).stdout.split()[0]
    SHOWN.mkdir()
    ways = {"import_by_fuse": ([install, "mount", IMAGE, SHOWN, "--digest", f"sha256:{digest}", "--log", OUT / "log"],
                               [install, "unmount", SHOWN]),
            "import_by_kernel": (["mount", "-t", "squashfs", "-o", "loop,ro,nodev,nosuid", IMAGE, SHOWN], ["umount", SHOWN])}
    for name in [name for name in ways if re.search(pattern, name) or re.search(pattern, f"{name}_cold")]:
        mount, unmount = ways[name]
        try:
            run(mount, stdout=sys.stderr)
        except subprocess.CalledProcessError:
            say(f"{name}: left out: this machine does not mount so")
            continue
        peer = importing(PREFIX / "current")
        if re.search(pattern, name):
            race(name, "warm", {"ours": importing(SHOWN), "peer": peer})
        run(unmount, stdout=sys.stderr)
        if re.search(pattern, f"{name}_cold"):
            race(f"{name}_cold", "read from the disk", {"ours": [mount, *importing(SHOWN), unmount], "peer": peer},
                 lambda side: out_of_memory(IMAGE) if side == "ours" else out_of_memory(PREFIX))


def main():
    tools, pattern = begun(NAMES)
    remove(OUT)
    OUT.mkdir(parents=True)
    try:
        make_prefix(tools)
        if re.search(pattern, "image_vs_mksquashfs"):
            compare_writing(tools / "sealift-install")
        if any(re.search(pattern, name) for name in NAMES[1:]):
            compare_imports(tools / "sealift-install", pattern)
    finally:
        remove(OUT)


main()
