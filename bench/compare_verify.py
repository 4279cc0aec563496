#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-install verify` against stock tools on the same bytes: the bundle of the torch 2.11 closure, 2.7 GB.
#   compare_verify.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_verify.py --names          lists the comparisons
# The bundles are packed once, into build/bench, and read once more before anything is timed: what is measured is
# hashing and reading memory, not a disc. Both sides check a signature and every byte; each is a process of its own.
import base64
import json
import re
import sys

from closure import HOME, begun, create, locked, race, run

NAMES = {  # name -> the chunks' digest, the peer's command
    "verify_vs_openssl": ("sha256", ["openssl", "dgst", "-sha256"]),
    "verify_vs_sha256sum": ("sha256", ["sha256sum"]),
    "verify_sm3_vs_openssl": ("sm3", ["openssl", "dgst", "-sm3"]),
}


def bundle_of(tools, digest):
    """The folder of the bundle whose chunks are digested so; packs it when it is not there."""
    folder = HOME / f"bundles/torch-{digest}-1"
    if not folder.exists():
        run(create(tools, locked(tools, digest), HOME / "bundles", "--volume-size", "1G"), stdout=sys.stderr)
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


def compare(tools, name):
    digest, command = NAMES[name]
    folder = bundle_of(tools, digest)
    volumes = sorted(folder.glob("*.vol*"))
    size = sum(volume.stat().st_size for volume in volumes)
    fingerprint = (HOME / "keys/root.fingerprint").read_text().strip()
    race(name, f"{len(volumes)} volumes, {size / 1e9:.2f} GB", {
        "ours": [[tools / "sealift-install", "verify", folder, "--fingerprint", fingerprint]],
        "peer": [[*command, *volumes], signature_files(folder)],
    })


def main():
    tools, pattern = begun(NAMES)
    for name in NAMES:
        if re.search(pattern, name):
            compare(tools, name)


main()
