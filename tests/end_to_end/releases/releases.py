#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Does `sealift-pack lock` take the releases that `uv pip compile` takes for the same target, with builds allowed?
# Draws from ml_300.txt and sets_40.txt what results.tsv does not have yet, so that an index is asked a little at a time:
#   releases.py --pack build/tools/bin/sealift-pack --uv build/prerequisites/uv/bin/uv --draw 30 --seed 1
# With --all everything that is missing runs (with a mirror), with --again NAME one of them once more.
# uv builds sources on the way, so it runs under bubblewrap, with the network and a home of its own.
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results.tsv"
COLUMNS = ["what", "packages", "verdict", "lock", "seconds", "uv", "date", "why"]
PYTHON, GLIBC = "/usr/bin/python3.11", "2.36"


def known():
    lines = RESULTS.read_text().splitlines()[1:] if RESULTS.exists() else []
    return {line.split("\t")[0]: dict(zip(COLUMNS, line.split("\t") + [""] * len(COLUMNS))) for line in lines}


def keep(rows):
    lines = ["\t".join(COLUMNS)]
    lines += ["\t".join(row[column] for column in COLUMNS) for _, row in sorted(rows.items())]
    RESULTS.write_text("\n".join(lines) + "\n")


def versions(pylock):
    return {package["name"]: package.get("version", "?") for package in tomllib.loads(pylock.read_text())["packages"]}


def run(command, log, limit, **more):
    begin = time.monotonic()
    with open(log, "w") as file:
        try:
            code = subprocess.run(command, stdout=file, stderr=file, timeout=limit, **more).returncode
        except subprocess.TimeoutExpired:
            code = -1
    return code, time.monotonic() - begin


def ask_uv(uv, requirements, work, limit):
    (work / "in.txt").write_text("\n".join(requirements) + "\n")
    command = [uv, "pip", "compile", "in.txt", "--python", PYTHON, "--python-platform",
               f"x86_64-manylinux_{GLIBC.replace('.', '_')}", "--format", "pylock.toml", "-o", "pylock.peer.toml",
               "--no-config", "--quiet"]
    held = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", str(work),
            str(work), "--bind", str(work.parent / "peer"), str(work.parent / "peer"), "--unshare-pid",
            "--die-with-parent", "--chdir", str(work)]
    environment = {**os.environ, "HOME": str(work.parent / "peer"), "UV_CACHE_DIR": str(work.parent / "peer/uv"),
                   "UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
    return run(held + command, work / "uv.log", limit, env=environment, cwd=work)


def ask_us(pack, uv, requirements, work, limit):
    listed = ", ".join(f'"{one}"' for one in requirements)
    (work / "job.toml").write_text(
        f'name = "ours"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "{GLIBC}"\n[python]\nversion = "3.11"\n'
        f'interpreter = "{PYTHON}"\nrequirements = [{listed}]\n')
    environment = {**os.environ, "UV_CACHE_DIR": str(work.parent / "ours/uv")}
    rules, all_seconds = 0, 0
    while True:
        code, seconds = run([pack, "lock", "job.toml", "--uv", uv, "--cache", str(work.parent / "ours/cache")],
                            work / "lock.log", limit, env=environment, cwd=work)
        all_seconds += seconds
        said = rules_in(work / "lock.log") if code > 0 else ""
        if not said or rules > 40:
            return code, all_seconds, rules
        rules += said.count("[[")
        with open(work / "job.toml", "a") as job:
            job.write(said)


# What a refusal says to paste into the job, as it stands there.
def rules_in(log):
    rules, inside = "", False
    for line in log.read_text(errors="replace").splitlines():
        head = line.lstrip().startswith("[[")
        inside = head or (inside and " = " in line)
        rules += line.strip() + "\n" if inside else ""
    return rules


# The refusal of a log: what, and what was got.
def last_words(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith(("error", "sealift-pack:"))), max(len(lines) - 1, 0))
    got = next((i for i, line in enumerate(lines) if i > at and line.startswith("got")), len(lines))
    said = lines[at:at + 1] + [" ".join(lines[got:got + 3])] * (got < len(lines))
    return "; ".join(said).replace("\t", " ")[:240]


def compare(what, options, place):
    work = pathlib.Path(tempfile.mkdtemp(dir=place))
    requirements = what.split(";")
    peer_code, peer_seconds = ask_uv(options.uv, requirements, work, options.limit)
    code, seconds, rules = ask_us(options.pack, options.uv, requirements, work, options.limit)
    peer, ours = work / "pylock.peer.toml", work / "pylock.ours.toml"
    count = 0
    if peer_code == 0 and ours.exists():
        theirs, mine = versions(peer), versions(ours)
        count = len(theirs)
        other = [f"{name} {theirs.get(name, 'none')} -> {mine.get(name, 'none')}"
                 for name in sorted(theirs.keys() | mine.keys()) if theirs.get(name) != mine.get(name)]
        verdict = "other: " + ", ".join(other[:6]) + (f" and {len(other) - 6} more" if len(other) > 6 else "") \
            if other else "equal"
    elif peer_code != 0 and not ours.exists():
        verdict = "both refuse"
    else:
        verdict = "uv alone" if peer_code == 0 else "lock alone"
    followed = f" with {rules} rule(s) that its refusals print" if rules else ""
    said = "made" + followed if code == 0 else f"exit {code}: {last_words(work / 'lock.log')}"
    if peer_code != 0:
        said += "; uv: " + last_words(work / "uv.log")
    if not options.keep:
        shutil.rmtree(work)
    version = subprocess.run([options.uv, "--version"], capture_output=True, text=True).stdout.split()[1]
    return {"what": what, "packages": str(count), "verdict": verdict, "lock": said,
            "seconds": f"{seconds:.0f} ({peer_seconds:.0f})", "uv": version,
            "date": time.strftime("%Y-%m-%d", time.gmtime()), "why": ""}


def summary(rows):
    for title, file in (("names", "ml_300.txt"), ("sets", "sets_40.txt")):
        listed = (HERE / file).read_text().split("\n")
        ran = [rows[what] for what in listed if what in rows]
        equal = sum(row["verdict"] == "equal" for row in ran)
        both = sum(row["verdict"] == "both refuse" for row in ran)
        made = sum(row["lock"].startswith("made") for row in ran)
        print(f"{title}: {len(ran)} of {len([one for one in listed if one])} ran, {equal} equal, {both} refused by both, "
              f"{len(ran) - equal - both} other; {made} locks were made")
    unexplained = [row for row in rows.values() if row["verdict"] not in ("equal", "both refuse") and not row["why"]]
    for row in unexplained:
        print(f"no reason yet: {row['what']}: {row['verdict']}; {row['lock']}")
    return 1 if unexplained else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pack", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--uv", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--draw", type=int, default=30)
    parser.add_argument("--sets", type=int, default=2, help="how many of those are sets")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--again", action="append", default=[])
    parser.add_argument("--limit", type=int, default=1800, help="seconds for each of the two; what lasts longer is compared by what lock chose before its builds")
    parser.add_argument("--place", default=tempfile.gettempdir())
    parser.add_argument("--keep", action="store_true", help="keep the folders with logs")
    options = parser.parse_args()
    needed = [options.pack, options.uv, PYTHON, shutil.which("bwrap")]
    if options.pack and not all(one and os.path.exists(one) for one in needed):
        print(f"left out: needs {options.pack}, {options.uv}, {PYTHON} and bubblewrap")
        sys.exit(77)
    rows = known()
    if options.pack and options.uv:
        draw = random.Random(options.seed)
        lists = [[line for line in (HERE / file).read_text().split("\n") if line and line not in rows]
                 for file in ("ml_300.txt", "sets_40.txt")]
        for one in lists:
            draw.shuffle(one)
        names, sets = lists
        chosen = names + sets if options.all else names[:options.draw - options.sets] + sets[:options.sets]
        place = pathlib.Path(options.place).resolve() / "releases"
        for folder in ("peer", "ours"):
            (place / folder).mkdir(parents=True, exist_ok=True)
        for what in options.again or chosen:
            why = rows.get(what, {}).get("why", "")
            rows[what] = compare(what, options, place)
            if rows[what]["verdict"] not in ("equal", "both refuse") or not rows[what]["lock"].startswith("made"):
                rows[what]["why"] = why
            keep(rows)
            print("\t".join(rows[what][column] for column in COLUMNS), flush=True)
    sys.exit(summary(rows))


main()
