#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The GM profile, as an attacker has it: a bundle that SM2 signed and whose chunks have SM3 digests, with each of its
# files changed. The real installer refuses each, with an exit code of its list, and never by a crash.
#   gm_bundle_test.py BIN [TRIES [SEED]]
import base64
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()
TRIES = int(sys.argv[2]) if len(sys.argv) > 2 else 60
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
ORDER = 0xFFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123  # of the curve of SM2, GB/T 32918.5
CODES = {4, 5, 6, 7, 11}  # format, digest, signature, missing, cannot check
failures = []
tries = 0


def verify(fingerprint):
    done = subprocess.run([BIN / "sealift-install", "verify", work / "bundle", "--fingerprint", fingerprint],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return done.returncode, done.stdout


def refused(what, fingerprint, codes=CODES):
    global tries
    tries += 1
    code, said = verify(fingerprint)
    if code not in codes:
        failures.append(what)
        print("FAILED:", what, code, said[:500])


def number(data, at):
    assert data[at] == 2
    return int.from_bytes(data[at + 2:at + 2 + data[at + 1]], "big"), at + 2 + data[at + 1]


def der(r, s):
    def integer(value):
        data = value.to_bytes(max(1, value.bit_length() // 8 + 1), "big", signed=False)
        return b"\x02" + bytes([len(data)]) + data
    body = integer(r) + integer(s)
    return b"\x30" + bytes([len(body)]) + body


work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-gm-"))
try:
    made = subprocess.run([BIN / "make_bundle", work / "good", "sm2", "sm3"], stdout=subprocess.PIPE, text=True, check=True)
    fingerprint = made.stdout.strip()
    other = subprocess.run([BIN / "make_bundle", work / "other", "sm2", "sm3"], stdout=subprocess.PIPE, text=True,
                           check=True).stdout.strip()
    shutil.copytree(work / "good", work / "bundle")
    code, said = verify(fingerprint)
    assert code == 0, said
    files = sorted(path.name for path in (work / "good").iterdir())
    seal = next(name for name in files if name.endswith(".seal"))
    lines = (work / "good" / seal).read_text().splitlines()

    def with_seal(what, changed, codes=CODES):
        (work / "bundle" / seal).write_text("\n".join(changed) + "\n")
        refused(what, fingerprint, codes)
        shutil.copy(work / "good" / seal, work / "bundle" / seal)

    # Another root's bundle under the same pin; the seals of one with the volumes of the other.
    refused("another root's fingerprint", other)
    with_seal("another bundle's seal", (work / "other" / seal).read_text().splitlines())
    # Signatures: other spellings of a good one, the mirror of s (which counts for ECDSA, never for SM2), edges.
    for at in range(len(lines)):
        envelope = json.loads(lines[at])
        good = base64.b64decode(envelope["signatures"][0]["sig"])
        r, next_at = number(good, 2)
        s, _ = number(good, next_at)
        for what, signature in (("mirror", der(r, ORDER - s)), ("r of 0", der(0, s)), ("s of 0", der(r, 0)),
                                ("r + n", der(r + ORDER, s)), ("s + n", der(r, s + ORDER)), ("r and s swapped", der(s, r)),
                                ("n - r - s", der(r, (ORDER - r - s) % ORDER)), ("a byte behind", good + b"\0"),
                                ("cut", good[:-1]), ("empty", b""), ("64 plain bytes", r.to_bytes(32, "big") + s.to_bytes(32, "big"))):
            changed = json.loads(lines[at])
            changed["signatures"][0]["sig"] = base64.b64encode(signature).decode()
            text = json.dumps(changed, separators=(",", ":"), sort_keys=True)
            with_seal(f"{what}, document {at}", lines[:at] + [text] + lines[at + 1:])
        for label in ("ed25519", "ecdsa-p256", "ecdsa-p384"):  # the key under another kind's name
            payload = base64.b64decode(envelope["payload"]).replace(b'"sm2"', b'"%s"' % label.encode())
            changed = dict(envelope, payload=base64.b64encode(payload).decode())
            if changed == envelope:  # the manifest names no kind
                continue
            with_seal(f"SM2 as {label}, document {at}",
                      lines[:at] + [json.dumps(changed, separators=(",", ":"), sort_keys=True)] + lines[at + 1:])
        payload = base64.b64decode(envelope["payload"]).replace(b'"sm3"', b'"sha256"').replace(b'"gm"', b'"standard"')
        changed = dict(envelope, payload=base64.b64encode(payload).decode())
        if changed != envelope:
            with_seal(f"SM3 as SHA-256, document {at}",
                      lines[:at] + [json.dumps(changed, separators=(",", ":"), sort_keys=True)] + lines[at + 1:])
    # Bits, anywhere.
    for _ in range(TRIES):
        name = random.choice([name for name in files if not name.startswith("sealift")])
        good, path = (work / "good" / name).read_bytes(), work / "bundle" / name
        at, bit = random.randrange(len(good)), 1 << random.randrange(8)
        path.write_bytes(good[:at] + bytes([good[at] ^ bit]) + good[at + 1:])
        refused(f"{name}, byte {at}, bit {bit}", fingerprint)
        path.write_bytes(good)
    code, said = verify(fingerprint)
    assert code == 0, said
finally:
    shutil.rmtree(work)
print(f"{tries} tries, {len(failures)} failed")
sys.exit(1 if failures else 0)
