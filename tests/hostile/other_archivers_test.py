#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# An archive that two programs read differently must be refused: whatever our readers accept, GNU tar, bsdtar, Python and
# unzip must list the same way, bsdtar also when it cannot seek. Over the whole corpus, the good archives, good ones with
# one byte changed, and wheels if some are given.
#   other_archivers_test.py MAKE_CORPUS LIST_ARCHIVE [WHEEL...]
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

make_corpus, list_archive, *wheels = sys.argv[1:]
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}
GNU_LINE = re.compile(r"(.)\S+ \S+ +(\d+) \d{4}-\d\d-\d\d \d\d:\d\d (.*)")
BSD_LINE = re.compile(r"(.)\S+ +\d+ \S+ +\S+ +(\d+) \w{3} +\d+ +[\d:]+ (.*)")


def run(*command, stdin=None):
    done = subprocess.run(command, env=ENV, stdin=stdin, capture_output=True, timeout=120)
    if done.returncode != 0 or done.stderr:
        raise ValueError(f"{command[0]} fails: {done.stderr.decode(errors='replace')[:200]}")
    return done.stdout.decode(errors="replace")


def row(kind, size, name, target=None):
    if kind == "d":
        return (name.rstrip("/"), "folder")
    return (name, f"link {target}") if kind == "l" else (name, f"file {size}")


def from_lines(pattern, text):
    rows = []
    for line in text.splitlines():
        kind, size, name = pattern.fullmatch(line).groups()
        name, _, target = name.partition(" -> ") if kind == "l" else (name, "", "")
        rows.append(row(kind, size, name, target))
    return rows


def gnu_tar(path):
    return from_lines(GNU_LINE, run("tar", "-tv", "--numeric-owner", "--quoting-style=literal", "-f", str(path)))


def bsdtar(path):
    return from_lines(BSD_LINE, run("bsdtar", "-tv", "--numeric-owner", "-f", str(path)))


def bsdtar_from_pipe(path):
    cat = subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE)
    with cat.stdout:
        text = run("bsdtar", "-t", "-f", "-", stdin=cat.stdout)
    return [(name.rstrip("/"), "") for name in text.splitlines()]


def python_tar(path):
    with tarfile.open(path, "r:") as archive:
        kinds = {tarfile.REGTYPE: "-", tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l"}
        return [row(kinds[m.type], m.size, m.name, m.linkname) for m in archive.getmembers()]


def python_zip(path):
    with zipfile.ZipFile(path) as archive:
        if archive.testzip() is not None:
            raise ValueError("Python finds a bad member")
        return [row("d" if m.is_dir() else "-", m.file_size, m.filename) for m in archive.infolist()]


def unzip(path):
    return [(name.rstrip("/"), "") for name in run("unzip", "-Z1", str(path)).splitlines()]


OTHERS = {"tar": (gnu_tar, bsdtar, bsdtar_from_pipe, python_tar), "zip": (python_zip, bsdtar, bsdtar_from_pipe, unzip)}


def ours(kind, paths):
    lines = []
    for begin in range(0, len(paths), 200):
        batch = [str(path) for path in paths[begin:begin + 200]]
        done = subprocess.run([list_archive, kind, *batch], capture_output=True, check=True)
        lines += [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(paths, lines, strict=True))


def disagreements(kind, path, listing):
    mine = sorted(map(tuple, listing))
    if kind == "zip":  # our reader leaves folders out, since nobody needs them
        mine = [entry for entry in mine if entry[1] != "folder"]
    folders = set()
    if kind == "zip":
        try:
            folders = {name for name, what in python_zip(path) if what == "folder"}
        except Exception:  # it is among the others below, which say so
            pass
    if not mine:
        return  # nothing to disagree about; unzip calls an empty archive an error
    for other in OTHERS[kind]:
        try:
            theirs = sorted(other(path))
        except Exception as error:  # whatever they do not like, we must not accept
            yield f"{other.__name__}: {type(error).__name__} {error}"
            continue
        if kind == "zip":
            theirs = [entry for entry in theirs if entry[0] not in folders]
        expected = mine if all(entry[1] for entry in theirs) else [(name, "") for name, _ in mine]
        if theirs != expected:
            yield f"{other.__name__} lists {theirs[:5]}, we list {expected[:5]}"


def mutants(path, folder):
    """The archive with one byte changed, at every third place of its first and last 2 KiB."""
    good = path.read_bytes()
    places = [at for at in range(0, len(good), 3) if at < 2048 or at > len(good) - 2048]
    for at in places:
        for change in (1, 0x80):
            bad = bytearray(good)
            bad[at] ^= change
            mutant = folder / f"{path.name}-{at}-{change}"
            mutant.write_bytes(bad)
            yield mutant


def main():
    faults, compared, refused = [], 0, 0
    with tempfile.TemporaryDirectory() as name:
        corpus = pathlib.Path(name)
        subprocess.run([make_corpus, name], check=True)
        (corpus / "mutants").mkdir()
        archives = {"tar": sorted((corpus / "tar").iterdir()),
                    "zip": sorted((corpus / "zip").iterdir()) + sorted((corpus / "wheel-file").iterdir())}
        for kind in archives:
            for path in list(archives[kind]):
                if path.name == "good-all-kinds" or path.name == "good":
                    archives[kind] += mutants(path, corpus / "mutants")
        archives["zip"] += map(pathlib.Path, wheels)
        for kind, paths in archives.items():
            for path, listing in ours(kind, paths).items():
                hostile = re.match(r"[A-Z]\d\d-", path.name) and path.parent.name != "wheel-file"
                if listing is None:
                    refused += 1
                    if path.name.startswith("good") and path.parent.name in archives or str(path) in wheels:
                        faults.append(f"{path}: refused, but it is good")
                    continue
                if hostile:
                    faults.append(f"{path}: accepted, but it is hostile")
                compared += 1
                faults += [f"{path}: {fault}" for fault in disagreements(kind, path, listing)]
    print("\n".join(faults[:40]))
    print(f"{compared} archives accepted and compared, {refused} refused, {len(faults)} faults")
    if compared < 20 or refused < 100:
        faults.append("too few archives to mean anything")
    return 1 if faults else 0


sys.exit(main())
