#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Names that type into a terminal, turn the direction of writing, are shown as nothing or begin a line of their own, given
# to every verb of every program: as each argument and option that takes a text, as names on a medium, in seals, jobs and
# weights. None of them reaches standard output or error as it is, and no line of a program is forged.
#   foreign_text_test.py BIN
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1]).resolve()
TOOLS = ("sealift-pack", "sealift-install", "sealift-repo", "sealift-launch")
SLOW = ("sealift-train", "sealift-verify")  # LibTorch starts in a second: each verb once
NASTY = "a\x1b]0;owned\x07\x9b31m\u202eb\u200b\u2028\r\nerror[io]: forged\n  next:     forged\nGOOD: forged\udcff"
BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\udc80-\udcff]")
FORGED = re.compile(r"^(error\[io\]|  next:     |GOOD:) ?forged", re.M)
failures, tries = [], 0


def run(*words, timeout=60):
    words = [word if isinstance(word, bytes) else os.fsencode(str(word)) for word in words]
    try:
        done = subprocess.run(words, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return "no end", (late.stdout or b"").decode(errors="surrogateescape")
    return done.returncode, done.stdout.decode(errors="surrogateescape")


def shown(*words, timeout=60):
    global tries
    tries += 1
    code, said = run(*words, timeout=timeout)
    found = BAD.search(said) or FORGED.search(said)
    if found or code == "no end" or code < 0:
        what = " ".join(pathlib.Path(str(word)).name if word is words[0] else repr(str(word))[:30] for word in words)
        failures.append(what)
        print("FAILED:", what, code, repr(found.group()) if found else "", said[-400:].encode("unicode_escape").decode())
    return said


def verbs_of(words, above=""):
    """(words, arguments, options) of each verb at the end of the tree."""
    text = subprocess.run([*map(str, words), "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env=environment).stdout
    if text == above:
        return
    section, below, arguments, options = "", [], [], []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            section = line
        found = re.match(r"  (\S+)(?: ([A-Z]+\S*))?", line)
        if not found or line.startswith("   "):
            continue
        name = found.group(1)
        if section.startswith("Subcommands"):
            below.append(name.rstrip(","))
        elif section.startswith("Positionals"):
            arguments.append(name)
        elif (found.group(2) or "").startswith("TEXT"):
            options.append(name.split(",")[-1].split("{")[0])
    for verb in below:
        yield from verbs_of([*words, verb], text)
    if not below:
        yield words, arguments, options


work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-text-"))
environment = {**os.environ, "HOME": str(work), "SEALIFT_CACHE": str(work / "cache"), "TMPDIR": str(work)}
try:
    there = os.fsencode(work) + b"/there-" + os.fsencode(NASTY.replace("/", "_"))
    os.mkdir(there)
    (work / "file").write_text("no file of ours\n")
    shutil.copy(work / "file", os.fsdecode(there + b".file"))
    gone = os.fsencode(str(work) + "/gone-") + os.fsencode(NASTY)
    for program in TOOLS + SLOW:
        if not (BIN / program).exists():
            print("not built here, not looked at:", program)
            continue
        for words, arguments, options in verbs_of([BIN / program]):
            shown(*words, NASTY)
            if arguments or program not in SLOW:  # without any, a trainer trains
                shown(*words, *[gone] * len(arguments))
            if program in SLOW:
                continue
            for value in (there, there + b".file"):
                shown(*words, *[value] * len(arguments))
            for option in options:
                if (words[-1], option) in (("serve", "--listen"),):
                    continue
                shown(*words, *[work / "none"] * len(arguments), option, NASTY, timeout=20)
                shown(*words, *[there] * len(arguments), option, there, timeout=20)
            shown(*words, "--" + NASTY)
            shown(*words, *[gone] * len(arguments), "--json")
    shown(BIN / "sealift-launch", NASTY)
    shown(BIN / "sealift-launch", "--nproc", NASTY, "true")
    environment["RANK"] = os.fsencode(NASTY)
    shown(BIN / "sealift-launch", "true")
    del environment["RANK"]

    # A medium: a bundle beside files with such names, with parts of its seal and chunks under them.
    fingerprint = run(BIN / "make_bundle", work / "bundle")[1].strip()
    readers = [("sealift-install", "verify"), ("sealift-install", "plan"), ("sealift-install", "preflight"),
               ("sealift-pack", "inspect"), ("sealift-pack", "documents"), ("sealift-pack", "sign"), ("sealift-pack", "recut"),
               ("sealift-repo", "serve")]

    def all_read(folder):
        for program, verb in readers:
            more = {"plan": ["--prefix", work / "prefix"], "documents": ["-o", work / "documents"], "recut": ["-o", work / "recut"],
                    "serve": ["--listen", "127.0.0.1:0", "--once"]}.get(verb, [])
            shown(BIN / program, verb, folder, "--fingerprint", fingerprint, *more, timeout=10 if verb == "serve" else 60)

    stem = next(path.stem for path in (work / "bundle").glob("*.seal"))
    for extra in (NASTY, f"{stem}.vol00{NASTY}", f"{stem}.rec001{NASTY}"):
        medium = work / "medium"
        shutil.copytree(work / "bundle", medium)
        with open(os.fsencode(medium) + b"/" + os.fsencode(extra), "wb") as file:
            file.write(b"x")
        all_read(medium)
        shutil.rmtree(medium)
    seal = (work / "bundle" / f"{stem}.seal").read_text().splitlines()
    for key in ("keyid", "sig", "spki", "payloadType", "payload", "unknown\u202e\x1b"):
        document = json.loads(seal[-1])
        target = document["signatures"][0] if key in ("keyid", "sig", "spki") else document
        target[key] = NASTY.replace("\udcff", "")
        (work / "medium").mkdir()
        for path in (work / "bundle").iterdir():
            shutil.copy(path, work / "medium")
        (work / "medium" / f"{stem}.seal").write_text("\n".join(seal[:-1] + [json.dumps(document, ensure_ascii=False)]) + "\n")
        all_read(work / "medium")
        shutil.rmtree(work / "medium")
    # Jobs, roots, trust folders, reports, weights.
    quoted = json.dumps(NASTY.replace("\udcff", ""))
    for key in ("name", "channel", "version", "unknown", f"{quoted}"):
        (work / "job.toml").write_text(f'{key} = {quoted}\n[target]\narch = {quoted}\n')
        shown(BIN / "sealift-pack", "lock", work / "job.toml")
        shown(BIN / "sealift-pack", "create", work / "job.toml", "--root", work / "job.toml", "-o", work / "out")
        shown(BIN / "sealift-pack", "root", "create", work / "job.toml")
        shown(BIN / "sealift-pack", "diff", work / "job.toml", work / "job.toml")
    (work / "B").mkdir()
    (work / "B/report.json").write_text(f'{{"format": {quoted}, {quoted}: 1}}')
    (work / "B/result.json").write_text(f'{{"world_size": {quoted}, {quoted}: {quoted}}}')
    if (BIN / "sealift-train").exists():
        name = NASTY.replace("\udcff", "")
        header = json.dumps({name: {"dtype": name, "shape": [1], "data_offsets": [0, 4]}}, ensure_ascii=False).encode()
        (work / "model").mkdir()
        (work / "model/model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
        (work / "model/config.json").write_text(json.dumps({"model_type": name, "architectures": [name]}, ensure_ascii=False))
        (work / "model/model.safetensors.index.json").write_text(json.dumps({"weight_map": {name: name}}, ensure_ascii=False))
        (work / "train.yaml").write_text(f"model: {work}/model\n{quoted}: {quoted}\ntrain_file: {quoted}\n")
        shown(BIN / "sealift-train", "plan", work / "model")
        shown(BIN / "sealift-train", "check", work / "B/result.json")
        shown(BIN / "sealift-train", "sft", work / "train.yaml")
        shown(BIN / "sealift-train", "sft", "--model", work / "model", "--train-file", work / "file", "--out", work / "trained")
        shown(BIN / "sealift-train", "export", work / "model", "--out", work / "exported")
    if (BIN / "sealift-verify").exists():
        shown(BIN / "sealift-verify", "diff", work / "B", work / "B")
        shown(BIN / "sealift-verify", "check-signature", work / "B")
finally:
    shutil.rmtree(work)
print(f"{tries} tries, {len(failures)} failed")
sys.exit(1 if failures or tries < 200 else 0)
