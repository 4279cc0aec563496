#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A hostile source of `sealift-pack`: a repository for dnf whose signature nobody asks for. What is done with it, and what must not come of it,
# is in foreign_server.py.
#   foreign_rpm_test.py BIN UV [TRIES [SEED]]
import gzip
import os
import random
import re
import subprocess

from foreign_server import bomb, changed, CODES, Endless, judge, main, NASTY, PYTHON_PART, sha, TRIES


def attack(site, host, work, canary):
    rpms = work / "rpms"
    rpms.mkdir()
    (rpms / "tool.spec").write_text("Name: tool\nVersion: 1\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n%description\nx\n%files\n")
    subprocess.run(["rpmbuild", "--quiet", "-bb", "--define", f"_topdir {rpms}/b", "--define", f"_rpmdir {rpms}", "--define",
                    "_build_name_fmt %%{NAME}.rpm", rpms / "tool.spec"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "HOME": str(rpms)})
    (rpms / "repo").mkdir()
    (rpms / "tool.rpm").rename(rpms / "repo/tool.rpm")
    rpm = (rpms / "repo/tool.rpm").read_bytes()
    subprocess.run(["createrepo_c", "--quiet", "--no-database", "--simple-md-filenames", rpms / "repo"], check=True)
    texts = {path.name: gzip.decompress(path.read_bytes()).decode() for path in (rpms / "repo/repodata").glob("*.gz")}
    job = PYTHON_PART + f'[rpm]\npackages = ["tool"]\nrelease = "9"\n[[rpm.repository]]\nname = "site"\nurl = "http://{host}/r/"\nsigned = "nothing"\n'

    def offer(before="", after="", body=rpm, more=None, primary=None, repomd=None):
        site.routes = {"/r/tool.rpm": body}
        data = "".join
        parts = ""
        for name, text in texts.items():
            kind = name.split(".")[0]
            if kind == "primary":
                assert before in text, before
                text = text.replace(before, after) if before else text
            raw = text.encode(errors="surrogatepass")
            packed = primary if kind == "primary" and primary is not None else gzip.compress(raw, 1)
            site.routes["/r/repodata/" + name] = packed
            of = packed if isinstance(packed, bytes) else b""
            parts += (f'<data type="{kind}"><checksum type="sha256">{sha(of)}</checksum><open-checksum type="sha256">{sha(raw)}</open-checksum>'
                      f'<location href="repodata/{name}"/><timestamp>1</timestamp><size>{len(of)}</size><open-size>{len(raw)}</open-size></data>')
        text = f'<?xml version="1.0"?><repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision>{parts}</repomd>'
        site.routes["/r/repodata/repomd.xml"] = text.encode() if repomd is None else repomd(text) if callable(repomd) else repomd
        site.routes.update(more or {})

    bad = CODES - {0}
    offer()
    judge("as it should be", job, {0})
    location = '<location href="tool.rpm"/>'
    copied = work / "tool.rpm"
    copied.write_bytes(rpm)
    for after in (f'<location xml:base="file://{work}" href="tool.rpm"/>', f'<location xml:base="FILE://{work}" href="tool.rpm"/>',
                  f'<location href="file://{work}/tool.rpm"/>', f'<location xml:base="file://{work}/" href="../{work.name}/tool.rpm"/>'):
        offer(location, after)
        judge(after, job, bad)
    copied.unlink()
    for before, after in ((location, '<location href="../../../../etc/passwd"/>'), (location, '<location href="/etc/passwd"/>'),
                          (location, '<location href="&#x1b;x.rpm"/>'), (location, '<location href="\u202ex.rpm"/>'), (location, ""),
                          ('ver="1"', 'ver="../1"'), ('ver="1"', 'ver="1\u202e"'), ('rel="1"', 'rel="$(id)"'), ("<name>tool</name>", "<name>tool</name><name>../x</name>"),
                          ("<arch>noarch</arch>", "<arch>../x</arch>"), (f'package="{len(rpm)}"', 'package="-1"'), (f'package="{len(rpm)}"', 'package="99999999999999999999"'),
                          (f'package="{len(rpm)}"', 'package="1"'), ('type="sha256"', 'type="md5"'), ("<summary>x</summary>", "<summary>\u202e\n\x85x</summary>"),
                          ('packages="1"', 'packages="99999999"'),
                          ('<?xml version="1.0" encoding="UTF-8"?>', f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file://{canary}">]>'),
                          ("<summary>x</summary>", "<summary>&e;</summary>")):
        offer(before, after)
        judge(f"{before} -> {after}", job)
    offer(body=Endless())
    judge("a package without an end", job, bad)
    offer(body=rpm[:-1] + b"x")
    judge("other bytes", job, bad)
    offer(body=(302, b"", {"Location": f"file://{canary}"}))
    judge("a package redirected to a file", job, bad)
    offer(repomd=(302, b"", {"Location": f"file://{canary}"}))
    judge("an index redirected to a file", job, bad)
    offer(repomd=Endless(b"<!-- -->" * 100_000))
    judge("an index without an end", job, bad)
    offer(primary=bomb(b"", b" ", 1 << 30))
    judge("an index of 1 GiB that is sent as 5 MB", job, bad)
    offer(repomd=lambda text: text.replace("repodata/primary", f"file://{canary}#").encode())
    judge("an index of a file of this machine", job, bad)
    offer(repomd=lambda text: text.replace('href="repodata/primary', f'xml:base="file://{work}" href="primary').encode())
    judge("a base of the index that is a folder of this machine", job)
    lines = [line for line in texts["primary.xml.gz"].splitlines() if line.strip()]
    for _ in range(TRIES):
        line = random.choice(lines)
        word = random.choice(re.findall(r"[\w./:-]+", line))
        offer(line, line.replace(word, str(random.choice(NASTY)), 1))
        judge(line + " changed", job)


main(attack, "dnf", "createrepo_c", "rpmbuild")
