#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The differential zoo: the same wheel through our reader, layout and audit, and through pip's and uv's installers, must
# give the same files, bytes, modes and programs, or a reason by name. Results are kept in table.tsv, so that runs of a
# few names each add up; what is there is not asked for again.
#   wheel_zoo.py INSTALL_WHEEL UV PYTHON [--draw N] [--seed S] [--table FILE] [WHEEL-OR-FOLDER...]
# PYTHON: a CPython with pip and venv. Without wheels it draws N names (10) of most_used_2000.txt and fetches the newest
# wheel of each with pip, as it is configured: with a mirror, draw many. Folders are searched for wheels,
# whatever their files are called. A wheel that needs more than 100 MB is left out with that reason.
import argparse
import csv
import hashlib
import io
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
MOST = 100 * 1000 * 1000
SITE = re.compile(r"lib/python3\.\d+/site-packages/")
# What each installer writes of itself, and RECORD, which is compared by its meaning.
OWN = {"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json", "RECORD"}
SELF_LOCATING = b"#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n' '''\n"
# pip and uv start long paths and plain ones differently; both are the environment's Python.
SHEBANG = re.compile(rb"\A#![^\n]*python[^\n]*\n|\A#!/bin/sh\n'''exec' [^\n]*\n' '''\n")


def run(*command, check=True, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **more)
    if check and done.returncode != 0:
        raise RuntimeError((done.stdout + done.stderr).strip()[-2000:])
    return done


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"/\S*/", "", lines[-1])[:150] if lines else "no word"


def script_body(data):
    """A program without what starts it; of an entry point what it leads to."""
    begin = SHEBANG.match(data)
    body = data[len(SELF_LOCATING):] if data.startswith(SELF_LOCATING) else data[begin.end() if begin else 0:]
    if len(body) > 500:  # no entry point; some bring programs of many megabytes
        return body
    point = re.search(rb"^from (\S+) import (\w+)$.*^\s+sys\.exit\(([\w.]+)\(\)\)", body, re.M | re.S)
    return b"entry point %s:%s" % (point[1], point[3]) if point else body


def tree(root):
    """path -> (may be executed, SHA-256), with RECORDs as sets of paths."""
    found, records = {}, {}
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            inner = os.path.relpath(path, root)
            if os.path.islink(path) or "__pycache__/" in inner or inner in ("generation.json", "pyvenv.cfg", ".gitignore", "CACHEDIR.TAG", ".lock"):
                continue
            with open(path, "rb") as f:
                data = f.read()
            runs = bool(os.stat(path).st_mode & 0o100)
            inner = SITE.sub("SITE/", inner).replace("include/site/python", "include/python")
            if re.match(r"SITE/[^/]+\.dist-info/", inner) and os.path.basename(inner) in OWN:
                if inner.endswith("/RECORD"):
                    rows = {os.path.normpath(os.path.join(os.path.dirname(os.path.dirname(path)), row[0])) for row in csv.reader(io.StringIO(data.decode())) if row}
                    records[inner] = {os.path.relpath(r, root) for r in rows}
                continue
            if inner.startswith("bin/"):
                data = script_body(data)
            found[inner] = (runs, hashlib.sha256(data).hexdigest())
    for inner, rows in records.items():
        rows = {SITE.sub("SITE/", r).replace("include/site/python", "include/python") for r in rows}
        found[inner] = sorted(r for r in rows if "__pycache__/" not in r and os.path.basename(r) not in OWN)
    return found


def differences(ours, theirs):
    for path in sorted(set(ours) | set(theirs)):
        if path not in ours:
            yield f"{path} is not there"
        elif path not in theirs:
            yield f"{path} is ours alone"
        elif isinstance(ours[path], list):
            extra, lacks = set(ours[path]) - set(theirs[path]), set(theirs[path]) - set(ours[path])
            if extra or lacks:
                yield f"{path} has rows of {sorted(extra)[:2]} and lacks {sorted(lacks)[:2]}"
        elif ours[path] != theirs[path]:
            yield f"{path} has other {'bytes' if ours[path][1] != theirs[path][1] else 'modes'}"


class Zoo:
    def __init__(self, asked):
        self.asked = asked
        self.rows = {}
        if asked.table.exists():
            for line in asked.table.read_text().splitlines()[1:]:
                name, rest = line.split("\t", 1)
                self.rows[name] = rest

    def keep(self, key, wheel, result):
        self.rows[key] = f"{wheel}\t{result}"
        lines = ["name\twheel\tresult"] + [f"{k}\t{v}" for k, v in sorted(self.rows.items())]
        self.asked.table.write_text("\n".join(lines) + "\n")
        print(f"{key}\t{wheel}\t{result}", flush=True)

    def fetch(self, name, folder):
        """The newest wheel, or a reason why there is none."""
        done = run(self.asked.python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps",
                   "--only-binary", ":all:", "--dest", folder, name, check=False,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST)))
        wheels = list(pathlib.Path(folder).glob("*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0], None
        if "File too large" in done.stderr:
            return None, "left out: larger than 100 MB"
        if "No matching distribution found" in done.stderr:
            return None, "left out: pip finds no wheel for this Python"
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")  # the network's fault says nothing of the wheel

    def compare(self, wheel):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            ours = run(self.asked.install_wheel, work / "ours", wheel, check=False)
            peers, refusals = {}, {}
            for peer in ("pip", "uv"):
                quiet = ("--no-deps", "--no-index", "--no-cache-dir" if peer == "pip" else "--no-cache", "--prefix", work / peer)
                command = ((self.asked.python, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check", "--ignore-installed", "--no-warn-script-location")
                           if peer == "pip" else (self.asked.uv, "pip", "install", "--python", self.asked.python, "--link-mode", "copy"))
                done = run(*command, *quiet, wheel, check=False)
                if done.returncode != 0:
                    refusals[peer] = last_line(done.stderr)
                else:
                    peers[peer] = tree(work / peer)
            if ours.returncode != 0:
                text = [l.strip() for l in ours.stdout.splitlines() if l.strip()]
                why = next((l for l in text if l.startswith("refused:")), text[-1] if text else "it ended")
                return f"{why[:200]}{'; so do ' + ' and '.join(refusals) if refusals else ''}"
            mine = tree(work / "ours/prefix/current")
            unlike = {peer: list(differences(mine, files)) for peer, files in peers.items()}
            notes = [f"{peer} refuses it: {why}" for peer, why in refusals.items()]
            for peer, found in unlike.items():
                if found:
                    notes.append(f"unlike {peer}: {'; '.join(found[:3])}{f' and {len(found) - 3} more' if len(found) > 3 else ''}")
            said = re.match(r"misdescribed (\d+), bytecode (\d+)", ours.stdout)
            if said and said[1] != "0":
                notes.append(f"RECORD is wrong about {said[1]}")
            if said and said[2] != "0":
                notes.append(f"{said[2]} compiled files left out")
            same = all(not found for found in unlike.values()) and not refusals
            return ("same" if same else "differs") + ("; " if notes else "") + "; ".join(notes)

    def draw(self):
        names = (HERE / "most_used_2000.txt").read_text().split()
        random.Random(self.asked.seed).shuffle(names)
        for name in [n for n in names if n not in self.rows][:self.asked.draw]:
            with tempfile.TemporaryDirectory() as folder:
                wheel, reason = self.fetch(name, folder)
                self.keep(name, wheel.name if wheel else "", reason or self.compare(wheel))

    def given(self, paths):
        for path in paths:
            for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink()):
                name = wheel_name(file)
                if name is None or f"({name})" in self.rows or name in {row.split("\t")[0] for row in self.rows.values()}:
                    continue
                if file.stat().st_size > MOST:
                    self.keep(f"({name})", name, "left out: larger than 100 MB")
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    copy = pathlib.Path(folder) / name
                    shutil.copyfile(file, copy)
                    self.keep(f"({name})", name, self.compare(copy))


def wheel_name(file):
    """The file's name, or what it would be, where a cache has named it by its digest; None for what is no wheel."""
    try:
        if file.name.endswith(".whl"):
            return file.name
        with open(file, "rb") as f:
            if f.read(4) != b"PK\3\4":
                return None
        with zipfile.ZipFile(file) as z:
            info = [n for n in z.namelist() if re.fullmatch(r"[^/]+\.dist-info/WHEEL", n)]
            if len(info) != 1:
                return None
            tags = re.findall(r"^Tag: (\S+)", z.read(info[0]).decode(), re.M)
        parts = [".".join(sorted({tag.split("-")[i] for tag in tags})) for i in range(3)]
        return f"{info[0].split('.dist-info/')[0]}-{'-'.join(parts)}.whl"
    except (OSError, zipfile.BadZipFile, IndexError, UnicodeDecodeError):
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("install_wheel", type=pathlib.Path)
    parser.add_argument("uv")
    parser.add_argument("python")
    parser.add_argument("wheels", nargs="*", type=pathlib.Path)
    parser.add_argument("--draw", type=int, default=10)
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--table", type=pathlib.Path, default=HERE / "table.tsv")
    asked = parser.parse_intermixed_args()
    asked.install_wheel = asked.install_wheel.resolve()
    zoo = Zoo(asked)
    if asked.wheels:
        zoo.given(asked.wheels)
    else:
        zoo.draw()
    results = [row.split("\t")[1] for row in zoo.rows.values()]
    ran = [r for r in results if not r.startswith("left out")]
    print(f"{len(ran)} ran, {sum(r.startswith('same') for r in ran)} the same; {len(results) - len(ran)} left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
