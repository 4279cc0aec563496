#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile source of `sealift-pack`: ModelScope. What is done with it, and what must not come of it,
# is in foreign_server.py.
#   foreign_modelscope_test.py BIN UV [TRIES [SEED]]
import copy
import json
import urllib.parse

from foreign_server import as_json, changed, CODES, Endless, judge, main, PYTHON_PART, sha, TRIES


def attack(site, host, work, canary):
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    weights = len(header).to_bytes(8, "little") + header + b"\0" * 8
    files = {"config.json": b'{"model_type": "tiny"}', "model.safetensors": weights}
    listing = {"Code": 200, "Success": True, "Data": {"Files": [
        {"Path": name, "Name": name, "Type": "blob", "Size": len(data), "Sha256": sha(data), "Revision": "a" * 40}
        for name, data in files.items()]}}
    job = PYTHON_PART + f'[[model]]\nrepo = "org/tiny"\nrevision = "master"\nhub = "modelscope"\nendpoint = "http://{host}"\n'

    class Routes(dict):
        def get(self, path, default=None):
            if path.startswith("/api/v1/models/org/tiny/repo/files"):
                return site.listing
            if path.startswith(("/api/v1/models/org/tiny/repo?", "/models/org/tiny/resolve/")):
                query = urllib.parse.parse_qs(path.partition("?")[2])
                name = query.get("FilePath", [path.split("?")[0].partition("/resolve/")[2].partition("/")[2]])[0]
                return site.files.get(name, default)
            return super().get(path, default)

    def offer(listing=listing, more=None, raw=None):
        site.routes, site.files = Routes(), {**files, **(more or {})}
        site.listing = raw if raw is not None else as_json(listing)

    def with_file(**more):
        value = copy.deepcopy(listing)
        value["Data"]["Files"][0] |= more
        return value

    bad = CODES - {0}
    offer()
    judge("as it should be", job, {0})
    for name in ("../../escape", "/etc/passwd", "a\nb.json", "a\x1b[2J.json", "\u202ejson.exe", ".git/config", "A/" * 3000 + "x", "..", "con\0fig"):
        offer(with_file(Path=name), {name: files["config.json"]})
        judge("a file named " + repr(name)[:80], job, CODES if name in (".git/config", "\u202ejson.exe") else bad)
    offer(more={"model.safetensors": Endless()})
    judge("weights without an end", job, bad)
    offer(with_file(Sha256=None), {"config.json": Endless(b" " * (1 << 20))})
    judge("no digest, and no end", job, bad)
    offer(with_file(Sha256=None, Size=1 << 40), {"config.json": Endless(b" " * (1 << 20))})
    judge("no digest, a size of a tebibyte, and no end", job, bad)
    offer(with_file(Size=(1 << 63) + 5))
    judge("a size beyond all discs", job, bad)
    for target in (f"file://{canary}", "ftp://x/", "http://127.0.0.1:1/"):
        offer(more={"model.safetensors": (302, b"", {"Location": target})})
        judge("redirect to " + target, job, bad)
        offer(raw=(302, b"", {"Location": target}))
        judge("list redirected to " + target, job, bad)
    offer(raw=Endless(b" " * (1 << 20)))
    judge("a list without an end", job, bad)
    offer(raw=b"[" * 1_000_000)
    judge("a list of brackets", job, bad)
    offer({**listing, "Data": {"Files": listing["Data"]["Files"] * 2}})
    judge("each file twice", job, bad)
    offer({**listing, "Data": {"Files": [{**listing["Data"]["Files"][0], "Path": "t", "Type": "tree"}] * 3001}})
    judge("a folder in itself", job, bad)
    huge = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"a\x1b[2J":"' + "\u202e".encode() + b'"}}'
    nasty = (len(huge)).to_bytes(8, "little") + huge + b"\0" * 8
    value = copy.deepcopy(listing)
    value["Data"]["Files"][1] |= {"Size": len(nasty), "Sha256": sha(nasty)}
    offer(value, {"model.safetensors": nasty})
    judge("weights whose metadata types", job)
    for _ in range(TRIES):
        mutant = changed(listing)
        offer(mutant)
        judge(json.dumps(mutant)[:300], job)


main(attack)
