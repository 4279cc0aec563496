#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile source of `sealift-pack`: a repository for apt whose signature nobody asks for. What is done with it, and what must not come of it,
# is in foreign_server.py.
#   foreign_apt_test.py BIN UV [TRIES [SEED]]
import io
import json
import random
import tarfile

from foreign_server import bomb, CODES, Endless, judge, main, NASTY, PYTHON_PART, sha, TRIES


def make_deb(name="tool", more=b""):
    def tar(entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as archive:
            for path, data in entries:
                info = tarfile.TarInfo(path)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return out.getvalue()
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@invalid>\nDescription: x\n".encode()
    deb = b"!<arch>\n"
    for member, data in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar([("./control", control)])), ("data.tar.gz", tar([("./usr/share/x", b"x")]))):
        deb += f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + (b"\n" if len(data) % 2 else b"")
    return deb + more


def attack(site, host, work, canary):
    deb = make_deb()
    stanza = {"Package": "tool", "Version": "1", "Architecture": "all", "Maintainer": "x <x@invalid>", "Filename": "./tool_1_all.deb",
              "Size": str(len(deb)), "SHA256": sha(deb), "Description": "x"}
    # Worst case: a source whose signature nobody asks for.
    job = PYTHON_PART + f'[apt]\npackages = ["tool"]\nsources = ["deb [trusted=yes] http://{host}/apt ./"]\n'

    def text_of(fields):
        return "".join(f"{key}: {value}\n" for key, value in fields.items()) + "\n"

    def offer(text=None, body=deb, packages=None, more=None):
        data = packages if packages is not None else (text if text is not None else text_of(stanza)).encode(errors="surrogatepass")
        site.routes = {"/apt/./Packages": data, "/apt/Packages": data, "/apt/./tool_1_all.deb": body, "/apt/tool_1_all.deb": body, **(more or {})}

    bad = CODES - {0}
    offer()
    judge("as it should be", job, {0})
    for key, value in (("Filename", f"file:{canary}"), ("Filename", "../../../etc/passwd"), ("Filename", "/etc/passwd"), ("Filename", "./a b.deb"),
                       ("Filename", "./'; touch x; '.deb"), ("Filename", "./\x1b[2J.deb"), ("Filename", "./x%2f..%2fy_1_all.deb"), ("Size", "-1"),
                       ("Size", "18446744073709551617"), ("Size", "0"), ("SHA256", "0" * 64), ("SHA256", "zz"), ("Version", "1\x1b[2J"),
                       ("Version", "../1"), ("Version", "$(id)"), ("Package", "-oDir::Etc=/x"), ("Architecture", "../x"), ("Depends", "tool2"),
                       ("Depends", "tool (>= 1) | ,,,((("), ("Essential", "yes"), ("Description", "\u202ex\x9b31m\n Package: forged\n .\n x")):
        fields = {**stanza, key: value}
        offer(text_of(fields))
        judge(f"{key}: {value!r}", job)
    offer(text_of(stanza) * 2)
    judge("the same twice", job)
    offer(text_of(stanza) + text_of({**stanza, "SHA256": "1" * 64, "Filename": "./other_1_all.deb"}))
    judge("one version twice, with other bytes", job)
    offer(body=Endless())
    judge("a package without an end", job, bad)
    offer(body=(302, b"", {"Location": f"file://{canary}"}))
    judge("a package redirected to a file", job, bad)
    offer(packages=(302, b"", {"Location": f"file://{canary}"}))
    judge("an index redirected to a file", job, bad)
    offer(packages=Endless(b"Package: x\n\n" * 100_000))
    judge("an index without an end", job, bad)
    offer(packages=b"", more={"/apt/./Packages.xz": None, "/apt/./Packages.gz": (200, bomb(text_of(stanza).encode(), b"\n", 2 << 30))})
    del site.routes["/apt/./Packages"], site.routes["/apt/Packages"]
    judge("an index of 2 GiB that is sent as 9 MB", job)
    for _ in range(TRIES):
        fields = dict(stanza)
        fields[random.choice(list(fields))] = str(random.choice(NASTY))
        offer(text_of(fields))
        judge(json.dumps(fields)[:300], job)


main(attack, "apt-get")
