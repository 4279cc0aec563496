#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-install verify` against stock tools on the same bytes: the bundle of the torch 2.11 closure, 2.7 GB.
#   compare_verify.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_verify.py --names          lists the comparisons
# The bundles are packed once, into build/bench, and read once more before anything is timed: what is measured is
# hashing and reading memory, not a disc. Both sides check a signature and every byte; each is a process of its own.
import base64
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "6"))
HOME = pathlib.Path(__file__).resolve().parent.parent / "build/bench"
JOB = pathlib.Path(__file__).resolve().parent / "verify.toml"
NAMES = {  # name -> the chunks' digest, the peer's command
    "verify_vs_openssl": ("sha256", ["openssl", "dgst", "-sha256"]),
    "verify_vs_sha256sum": ("sha256", ["sha256sum"]),
    "verify_sm3_vs_openssl": ("sm3", ["openssl", "dgst", "-sm3"]),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, **options):
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, **options)


def bundle_of(tools, digest):
    """The folder of the bundle whose chunks are digested so; packs it when it is not there."""
    pack, name = tools / "sealift-pack", f"torch-{digest}"
    lock, folder = HOME / f"{name}.lock.toml", HOME / f"bundles/{name}-1"
    HOME.mkdir(parents=True, exist_ok=True)
    if not (HOME / "keys/root.1.json").exists():
        run([pack, "keygen", HOME / "keys"], stdout=sys.stderr)
    if not folder.exists():
        job = HOME / f"{name}.toml"
        job.write_text(f'name = "{name}"\npayload_digest = "{digest}"\n' + JOB.read_text())
        run([pack, "lock", job, "-o", lock, "--cache", HOME / "cache"], stdout=sys.stderr)
        run([pack, "create", lock, "--root", HOME / "keys/root.1.json", "--key", HOME / "keys/release.key", "-o", HOME / "bundles", "--volume-size", "1G",
             "--cache", HOME / "cache", "--installer", tools / "sealift-install"], stdout=sys.stderr)
    return folder


def signature_files(folder):
    """What `openssl pkeyutl` needs, made from the seal as FORMAT.md's last section does: key, message, signature."""
    sealed = json.loads(next(folder.glob("*.seal")).read_text().splitlines()[-1])
    manifest, kind, signature = base64.b64decode(sealed["payload"]), sealed["payloadType"], sealed["signatures"][0]
    parts = {
        "key.der": base64.b64decode(signature["spki"]),
        "message": f"DSSEv1 {len(kind)} {kind} {len(manifest)} ".encode() + manifest,
        "signature": base64.b64decode(signature["sig"]),
    }
    for name, data in parts.items():
        (HOME / name).write_bytes(data)
    return ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", HOME / "key.der", "-rawin",
            "-in", HOME / "message", "-sigfile", HOME / "signature"]


def timed(*commands):
    """Milliseconds of wall clock and of processor for the commands, one after the other."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for command in commands:
        run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1e3, cpu * 1e3


def race(tools, name):
    digest, command = NAMES[name]
    folder = bundle_of(tools, digest)
    volumes = sorted(folder.glob("*.vol*"))
    ours = [[tools / "sealift-install", "verify", folder, "--fingerprint", (HOME / "keys/root.fingerprint").read_text().strip()]]
    peer = [[*command, *volumes], signature_files(folder)]
    sides = {"ours": ours, "peer": peer}
    for commands in sides.values():  # brings the bundle into memory, and both programs
        timed(*commands)
    size = sum(volume.stat().st_size for volume in volumes)
    times = []
    for number in range(ROUNDS):
        order = ["ours", "peer"] if number % 2 == 0 else ["peer", "ours"]
        times.append({side: timed(*sides[side]) for side in order})
    say(f"{name}: {len(volumes)} volumes, {size / 1e9:.2f} GB; ms of wall clock (of processor), ours/peer: "
        + ", ".join(f"{one['ours'][0]:.0f} ({one['ours'][1]:.0f})/{one['peer'][0]:.0f} ({one['peer'][1]:.0f})" for one in times))
    ratios = [one["peer"][0] / one["ours"][0] for one in times]
    ratio = statistics.median(ratios)
    median = {side: statistics.median(one[side][0] for one in times) for side in sides}
    print(f"{name}\t{median['ours']:.0f}\t{median['peer']:.0f}\t{ratio:.3f}\t{(max(ratios) - min(ratios)) / ratio:.3f}", flush=True)


def main():
    if sys.argv[1] == "--names":
        print("\n".join(NAMES))
        return
    tools, pattern = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        "columns: name, ours [ms], peer [ms], ratio peer/ours, spread of the ratio")
    for name in NAMES:
        if re.search(pattern, name):
            race(tools, name)


main()
