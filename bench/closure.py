# SPDX-License-Identifier: Apache-2.0
# What the comparisons of whole programs share: the torch 2.11 closure, locked once by our own packager into build/bench
# and used again; a command timed with all it starts; and two sides in turn, one line on stdout.
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "6"))
HOME = pathlib.Path(os.environ.get("BENCH_HOME", pathlib.Path(__file__).resolve().parent.parent / "build/bench"))
JOB = pathlib.Path(__file__).resolve().parent / "closure.toml"


def say(text):
    print(text, file=sys.stderr, flush=True)


def begun(names):
    """(tools' folder, pattern) of the command line, after the line that heads the figures; --names prints `names` and ends."""
    if sys.argv[1] == "--names":
        print("\n".join(names))
        sys.exit()
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; "
        "columns: name, ours [ms], peer [ms], ratio peer/ours, spread of the ratio")
    return pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]


def run(command, **options):
    subprocess.run([str(part) for part in command], check=True, stdin=subprocess.DEVNULL, **options)


def locked(tools, digest):
    """The lock of the closure, with payload chunks digested so; the keys are in HOME/keys. create() fills HOME/cache."""
    pack, name = tools / "sealift-pack", f"torch-{digest}"
    lock = HOME / f"{name}.lock.toml"
    HOME.mkdir(parents=True, exist_ok=True)
    if not (HOME / "keys/root.1.json").exists():
        run([pack, "keygen", HOME / "keys"], stdout=sys.stderr)
    if not lock.exists():
        job = HOME / f"{name}.toml"
        job.write_text(f'name = "{name}"\npayload_digest = "{digest}"\n' + JOB.read_text())
        run([pack, "lock", job, "-o", lock, "--cache", HOME / "cache"], stdout=sys.stderr)
    return lock


def create(tools, lock, out, *more):
    """The command that makes the bundle of `lock` in `out`."""
    return [tools / "sealift-pack", "create", lock, "--root", HOME / "keys/root.1.json", "--key", HOME / "keys/release.key",
            "-o", out, "--cache", HOME / "cache", "--installer", tools / "sealift-install", "--no-rehearsal", *more]


def fetched(tools, lock):
    """The folder of the files that `lock` names, each under its SHA-256. Only a bundle's making fetches: this one is thrown away."""
    files = HOME / "cache/sha256"
    if not all((files / wheel["sha256"]).exists() for wheel in tomllib.loads(lock.read_text())["wheel"]):
        with tempfile.TemporaryDirectory(dir=HOME) as out:
            run(create(tools, lock, out), stdout=sys.stderr)
    return files


class Cost:
    """What commands cost, one after the other: milliseconds of wall clock and of processor, and the largest process."""

    def __init__(self, *commands):
        self.cpu = self.peak = 0
        began = time.perf_counter()
        for command in commands:
            with tempfile.TemporaryFile() as errors:
                child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
                if child.returncode != 0:
                    errors.seek(0)
                    say(errors.read().decode(errors="replace"))
                    raise subprocess.CalledProcessError(child.returncode, child.args)
            self.cpu += (usage.ru_utime + usage.ru_stime) * 1e3
            self.peak = max(self.peak, usage.ru_maxrss / 1e3)  # MB
        self.wall = (time.perf_counter() - began) * 1e3


def race(name, about, sides, before=lambda side: None):
    """Both sides once untimed, then in turn (ABBA). `sides`: "ours" and "peer" -> its commands; `before` makes room for one."""
    def cost(side):
        before(side)
        return Cost(*sides[side])

    for side in sides:  # brings what they read into memory, and the programs
        cost(side)
    rounds = []
    for number in range(ROUNDS):
        order = ["ours", "peer"] if number % 2 == 0 else ["peer", "ours"]
        rounds.append({side: cost(side) for side in order})
    say(f"{name}: {about}; ms of wall clock (of processor), ours/peer: "
        + ", ".join("/".join(f"{one[side].wall:.0f} ({one[side].cpu:.0f})" for side in ("ours", "peer")) for one in rounds))
    say(f"{name}: largest process [MB], ours/peer: " + "/".join(f"{max(one[side].peak for one in rounds):.0f}" for side in ("ours", "peer")))
    ratios = [one["peer"].wall / one["ours"].wall for one in rounds]
    ratio = statistics.median(ratios)
    median = {side: statistics.median(one[side].wall for one in rounds) for side in sides}
    print(f"{name}\t{median['ours']:.0f}\t{median['peer']:.0f}\t{ratio:.3f}\t{(max(ratios) - min(ratios)) / ratio:.3f}", flush=True)
    return rounds
