#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-pack create` against stock tools on the same bytes: the torch 2.11 closure from a cache, 2.7 GB, to a signed
# bundle on the disc.
#   compare_create.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_create.py --names          lists the comparisons
# Both sides read the same files from memory and end with everything synced. What a side wrote is removed before the
# next one begins, outside of what is timed: there is no room for all rounds.
import os
import re
import shutil
import sys
import tomllib

from closure import HOME, begun, create, locked, race

NAME = "create_vs_tar_zstd"
PEAK = 300  # MB, however big the input

# As people do it by hand: archive and compress, digest, sign; then everything durable.
PEER = """set -euo pipefail
out=$1 cache=$2 key=$3 folder=$4
shift 4
tar -chf - -C "$cache" "$@" -C "$folder" sealift-install audit.sh | zstd -q -T0 -3 -o "$out/env.tar.zst"
openssl dgst -sha256 -binary "$out/env.tar.zst" > "$out/digest"
openssl pkeyutl -sign -inkey "$key" -rawin -in "$out/digest" -out "$out/signature"
sync "$out/env.tar.zst" "$out/digest" "$out/signature" "$out"
"""


def main():
    tools, pattern = begun([NAME])
    if not re.search(pattern, NAME):
        return
    lock = locked(tools, "sha256")
    content = tomllib.loads(lock.read_text())
    blobs = [content["interpreter"]["sha256"]] + [wheel["sha256"] for wheel in content["wheel"]]
    out = HOME / "create"
    sides = {
        "ours": [create(tools, lock, out)],
        "peer": [["bash", "-c", PEER, "peer", out, HOME / "cache/sha256", HOME / "keys/release.key", tools, *blobs]],
    }

    def before(side):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        os.sync()

    rounds = race(NAME, f"{len(blobs)} files", sides, before)
    shutil.rmtree(out)
    peak = max(one["ours"].peak for one in rounds)
    if peak > PEAK:
        sys.exit(f"{NAME}: create took {peak:.0f} MB of memory, more than {PEAK}")


main()
