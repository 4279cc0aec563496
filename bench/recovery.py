#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What recovery data costs and gives back, on a bundle with 5 % of it: seconds of `create` more, then for scratches that
# grow until they are too many the bytes lost, the bytes mended and seconds.
#   recovery.py TOOLS [SEED] [SIZE]    TOOLS: the folder with our programs. SIZE: so many MB of random bytes as a data set
#   instead of the torch 2.11 closure (2.7 GB), which needs the network. One line a scratch on stdout, tab-separated:
#   what, chunks lost, bytes lost, bytes mended, seconds of verify, of mend, largest process of mend [MB],
#   seconds of an export that mends while it reads, its largest process [MB]
# The damaged bundle is hard links to the good one, but for the volumes that are scratched: they are copies.
import json
import pathlib
import random
import shutil
import subprocess
import sys

from closure import HOME, Cost, create, locked, run, say

PERCENT = 5
SMALL = """name = "random"
version = 1
[target]
arch = "x86_64"
glibc = "2.17"
runtime = "carried"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["./nothing"]
[[data]]
source = "random"
"""
# A package that a build backend of its own makes, since any other would have to come from an index.
PACKAGE = {"pyproject.toml": """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "nothing"
version = "1"
""", "backend.py": """import zipfile
def build_wheel(folder, *_):
    info = "nothing-1.dist-info"
    with zipfile.ZipFile(f"{folder}/nothing-1-py3-none-any.whl", "w") as wheel:
        for name, text in (("METADATA", "Metadata-Version: 2.1\\nName: nothing\\nVersion: 1\\n"),
                           ("WHEEL", "Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")):
            wheel.writestr(zipfile.ZipInfo(f"{info}/{name}"), text)
            rows.append(row(f"{info}/{name}", text))
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join(rows) + f"{info}/RECORD,,\\n")
    return "nothing-1-py3-none-any.whl"
rows = []
def row(path, text):
    import base64, hashlib
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(text)}\\n"
"""}


def small_lock(tools, megabytes):
    """The lock of a job of its own, which needs no network; its data is made anew where its size is another one."""
    home = HOME / "recovery-job"
    data = home / "random/bytes"
    data.parent.mkdir(parents=True, exist_ok=True)
    if not (HOME / "keys/root.1.json").exists():
        run([tools / "sealift-pack", "keygen", HOME / "keys"], stdout=sys.stderr)
    if not data.exists() or data.stat().st_size != megabytes * 1_000_000:
        chance = random.Random(0)
        with open(data, "wb") as file:
            for _ in range(megabytes):
                file.write(chance.randbytes(1_000_000))
    (home / "nothing").mkdir(exist_ok=True)
    for name, text in PACKAGE.items():
        (home / "nothing" / name).write_text(text)
    (home / "job.toml").write_text(SMALL)
    run([tools / "sealift-pack", "lock", home / "job.toml", "-o", home / "job.lock.toml", "--cache", HOME / "cache"], stdout=sys.stderr)
    return home / "job.lock.toml"


def made(tools, lock, volume_size):
    """The bundle with recovery data, packed anew beside one without, and what each took."""
    folders = {}
    for name, more in (("plain", []), ("recovery", ["--recovery", f"{PERCENT}%"])):
        out = HOME / f"recovery-{name}"
        shutil.rmtree(out, ignore_errors=True)
        cost = Cost(create(tools, lock, out, "--volume-size", volume_size, *more))
        folders[name] = next(out.iterdir())
        say(f"create, {name}: {cost.wall / 1e3:.1f} s, largest process {cost.peak:.0f} MB")
    size = {kind: sum(file.stat().st_size for file in folders["recovery"].glob(f"*.{kind}[0-9]*")) for kind in ("vol", "rec")}
    say(f"{size['rec']} bytes of recovery data for {size['vol']} bytes of payload")
    return folders["recovery"]


def scratched(folder, damaged, marks):
    """A copy of the bundle in which these (volume, offset, length) are overwritten."""
    shutil.rmtree(damaged, ignore_errors=True)
    shutil.copytree(folder, damaged, copy_function=lambda a, b: pathlib.Path(b).hardlink_to(a))
    for name in {volume for volume, _, _ in marks}:
        (damaged / name).unlink()
        shutil.copyfile(folder / name, damaged / name)
    for name, offset, length in marks:
        with open(damaged / name, "r+b") as file:
            file.seek(offset)
            file.write(b"\xaa" * length)


def cost_or_refusal(command):
    """Seconds and largest process [MB] as texts."""
    try:
        cost = Cost(command)
    except subprocess.CalledProcessError:
        return "refused", ""
    return f"{cost.wall / 1e3:.2f}", f"{cost.peak:.0f}"


def measure(tools, what, folder, marks):
    damaged, into, out = (HOME / f"recovery-{name}" for name in ("damaged", "mended", "exported"))
    for old in (into, out):
        shutil.rmtree(old, ignore_errors=True)
    scratched(folder, damaged, marks)
    install = tools / "sealift-install"
    trust = ["--fingerprint", (HOME / "keys/root.fingerprint").read_text().strip()]
    command = [install, "verify", damaged, *trust, "--json"]
    found = json.loads(subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["recovery"]
    clock = Cost(["sh", "-c", '"$@" || :', "sh", *command])
    seconds, peak = cost_or_refusal([install, "mend", damaged, *trust, "--into", into])
    for file in into.rglob("*.vol*"):
        if subprocess.run(["cmp", file, folder / file.name]).returncode != 0:
            sys.exit(f"{file} is not what was packed")
    reading = cost_or_refusal([install, "export", damaged, *trust, "--wheels", out / "wheels", "--models", out / "models"])
    print(what, found["bad_chunks"], found["bad_bytes"], 0 if seconds == "refused" else found["bad_bytes"],
          f"{clock.wall / 1e3:.2f}", seconds, peak, *reading, sep="\t", flush=True)


def main():
    tools, seed = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if len(sys.argv) > 3:
        folder = made(tools, small_lock(tools, int(sys.argv[3])), f"{max(1, int(sys.argv[3]) // 5)}M")
    else:
        folder = made(tools, locked(tools, "sha256"), "500M")
    volumes = {file.name: file.stat().st_size for file in sorted(folder.glob("*.vol*"))}
    chance, total = random.Random(seed), sum(volumes.values())
    measure(tools, "nothing", folder, [])
    for share in (0.001, 0.01, 0.04, 0.06):  # one run on one disc
        name = max(volumes, key=volumes.get)
        length = min(int(total * share), volumes[name])
        measure(tools, f"one scratch of {share:.1%}", folder, [(name, (volumes[name] - length) // 2, length)])
    for count in (1, 10, 30, 100):  # sectors of 2048 bytes, anywhere
        marks = []
        for _ in range(count):
            name = chance.choice(list(volumes))
            marks.append((name, chance.randrange(volumes[name] // 2048) * 2048, 2048))
        measure(tools, f"{count} bad sectors", folder, marks)


main()
