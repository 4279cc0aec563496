#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What a refused wheel's message tells people to write into their job, followed word for word: each way ends in a lock,
# and the printed rules and address together end in an installation.
# With the real uv and a folder of wheels; skipped (77) where uv or python3.11 is not.
#   wheel_remedies_test.py BIN UV
import base64
import hashlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHON = "/usr/bin/python3.11"
if not (UV.exists() and os.path.exists(PYTHON)):
    print("skipped: needs uv and python3.11")
    sys.exit(77)


def make_wheel(index, name, version="1.0", files=None, requires=(), comment=b"", sizes=None):
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info/"
    index.mkdir(exist_ok=True)
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    files = dict({f"{stem}/__init__.py": ""} if files is None else files)
    files[info + "METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    files[info + "WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    rows = "".join(f"{at},sha256={digest(text)},{(sizes or {}).get(at, len(text))}\n" for at, text in files.items())
    path = index / f"{stem}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for at, text in {**files, info + "RECORD": rows + info + "RECORD,,\n"}.items():
            member = zipfile.ZipInfo(at)
            member.comment = comment
            archive.writestr(member, text)


def main(work):
    index = work / "wheels"

    def lock(case, requirements, python="", rules=""):
        folder = work / case
        folder.mkdir(exist_ok=True)
        (folder / "requirements.txt").write_text("--no-index\n--find-links ../wheels\n" + "\n".join(requirements) + "\n")
        (folder / "job.toml").write_text(
            f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n'
            f'interpreter = "{PYTHON}"\nrequirements_file = "requirements.txt"\n{python}\n{rules}\n')
        environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache"),
                       "SEALIFT_UV": str(UV), "UV_NO_CACHE": "1"}
        return subprocess.run([BIN / "sealift-pack", "lock", "job.toml"], env=environment, cwd=folder, text=True, capture_output=True)

    def keys(said):
        """Keys under [python] that it names, each as it can be pasted."""
        return re.findall(r'\b((?:constraints|excludes) = \["[^"]*"\])', said)

    def rules(said):
        """Tables that it prints, with their blanks."""
        return "".join(block + "\n" for block in re.findall(r'^ *\[\[\w+\]\]\n(?:^ *\w+ = ".*"\n?)+', said, re.M))

    def follow(case, requirements, cause, remedies, wheels):
        """The refusal names the cause and these remedies, and each of them alone leads to a lock of these wheels."""
        refused = lock(case, requirements)
        if refused.returncode == 0 or cause not in refused.stderr:
            sys.exit(f"failed: {case} was not refused for it\n{refused.stderr}")
        found = {"rules": rules(refused.stderr)} if remedies == ["rules"] else {key.split(" = ")[0]: key for key in keys(refused.stderr)}
        if sorted(found) != sorted(remedies) or not all(found.values()):
            sys.exit(f"failed: {case} has the remedies {found}\n{refused.stderr}")
        for kind, text in found.items():
            result = lock(case, requirements, **({"rules": text} if kind == "rules" else {"python": text}))
            if result.returncode != 0:
                sys.exit(f"failed: {case}, after\n{text}\n{result.stderr}")
            got = sorted(re.findall(r'^file = "([^-]*-[^-]*)-', (work / case / "demo.lock.toml").read_text(), re.M))
            if got != sorted(wheels[kind]):
                sys.exit(f"failed: {case}, after\n{text}\n{got}")
            print(f"{case}: {text.strip()}")
        return "\n".join(found.values())

    both = ["constraints", "excludes"]
    entry = {"pointless-2.0.dist-info/entry_points.txt": "[console_scripts]\nrun = pointless main\n"}
    for name, cause, fault in (("commented", "a member has a comment", {"comment": b"x"}),
                               ("pointless", "an entry point is not", {"files": entry}),
                               ("starting", "another size", {"files": {"starting.pth": "# text\n"}, "sizes": {"starting.pth": 99}})):
        make_wheel(index, name)
        make_wheel(index, name, "2.0", **fault)
        make_wheel(index, f"top-{name}", requires=[name])
        top = f"top_{name}-1.0"
        follow(name, [f"top-{name}"], cause, both, {"constraints": [top, f"{name}-1.0"], "excludes": [top]})

    make_wheel(index, "placer", files={"placer-1.0.data/data/elsewhere/readme.txt": "x"})
    make_wheel(index, "top-placer", requires=["placer"])
    follow("placer", ["top-placer"], "elsewhere/readme.txt", ["excludes"], {"excludes": ["top_placer-1.0"]})

    make_wheel(index, "starter", files={"starter.pth": "import sys; sys.flags\n"})
    allowed = follow("starter", ["starter"], "when Python starts", ["rules"], {"rules": ["starter-1.0"]})

    make_wheel(index, "one", files={"both/__init__.py": "1"})
    make_wheel(index, "two", files={"both/__init__.py": "2"})
    allowed += follow("owner", ["one", "two"], "both/__init__.py", ["rules"], {"rules": ["one-1.0", "two-1.0"]})

    # Both at once, as rouge and rouge-chinese have it: where a rule gives all files to one owner, nobody is a guest.
    make_wheel(index, "score", files={"tool/__init__.py": "", "tool/cmd.py": "1", "score/__init__.py": "1"})
    make_wheel(index, "score-more", files={"tool/__init__.py": "", "tool/cmd.py": "2", "score/__init__.py": "2"})
    follow("both", ["score", "score-more"], "2 collisions", ["rules"], {"rules": ["score-1.0", "score_more-1.0"]})

    # Two guests in one package, one of them with a library where ld.so looks for the host's: a rule for each.
    make_wheel(index, "host", files={"hostpkg/__init__.py": "1", "hostpkg/lib/libhost.so": "1"})
    make_wheel(index, "plug", files={"hostpkg/plugins/extra.py": "2"})
    make_wheel(index, "engine", files={"hostpkg/lib/libengine.so": "3"}, requires=["host"])
    wheels = ["host-1.0", "plug-1.0", "engine-1.0"]
    allowed += follow("shared", ["host", "plug", "engine"], "into the package of another one", ["rules"], {"rules": wheels})


    # An address that a package of an index names is fetched only where the job says so, too, as with uv.
    make_wheel(work / "elsewhere", "other")
    make_wheel(index, "addressed", requires=[f"other @ {(work / 'elsewhere/other-1.0-py3-none-any.whl').as_uri()}"])
    both = {"constraints": ["addressed-1.0", "other-1.0"]}
    address = follow("address", ["addressed"], "by its address", ["constraints"], both)

    # All that was printed, in one job, ends in an installation.
    def run(*words):
        done = subprocess.run([str(word) for word in words], text=True, capture_output=True, cwd=work,
                              env={"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache")})
        if done.returncode != 0:
            sys.exit(f"failed: {words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    locked = lock("all", ["starter", "one", "two", "host", "plug", "engine", "addressed"], python=address, rules=allowed)
    if locked.returncode != 0:
        sys.exit(f"failed: all remedies in one job\n{locked.stderr}")
    run(BIN / "sealift-pack", "keygen", "keys")
    run(BIN / "sealift-pack", "create", "all/demo.lock.toml", "--root", "keys/root.1.json", "--key", "keys/release.key",
        "-o", "bundle", "--installer", BIN / "sealift-install", "--no-rehearsal")
    run(BIN / "sealift-install", "apply", "bundle/demo-1", "--prefix", work / "prefix", "--fingerprint",
        (work / "keys/root.fingerprint").read_text().strip())
    run(work / "prefix/current/bin/python3", "-c", "import addressed, both, hostpkg.plugins.extra, other")
    print("all of them are installed")

    # A bundle of data alone has no interpreter, and takes no environment's place: what is printed installs it beside.
    (work / "lines").mkdir()
    (work / "lines/a.jsonl").write_text("{}\n")
    (work / "rows.toml").write_text('name = "rows"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[[data]]\nsource = "lines"\n')
    run(BIN / "sealift-pack", "lock", "rows.toml", "--uv", "none")
    run(BIN / "sealift-pack", "create", "rows.lock.toml", "--root", "keys/root.1.json", "--key", "keys/release.key", "-o", "alone",
        "--installer", BIN / "sealift-install")
    apply = [BIN / "sealift-install", "apply", "alone/rows-1"]
    fingerprint = ["--fingerprint", (work / "keys/root.fingerprint").read_text().strip()]
    refused = subprocess.run([*map(str, apply), "--prefix", str(work / "prefix")], text=True, capture_output=True, cwd=work)
    printed = re.search("install it beside: (--prefix [^,]*),", refused.stderr)
    if refused.returncode != 10 or not printed:
        sys.exit(f"failed: data in an environment's prefix\n{refused.stderr}")
    run(*apply, *shlex.split(printed[1]), *fingerprint)
    if (work / "rows/current/data/lines/a.jsonl").read_text() != "{}\n":
        sys.exit("failed: the data are not there")
    print("data alone are installed beside")

    # The other way that is printed: they are added to the environment that is current.
    if "add it to what is current: apply --add" not in refused.stderr:
        sys.exit(f"failed: no way into the environment\n{refused.stderr}")
    run(*apply, "--prefix", work / "prefix", "--add", *fingerprint)
    run(work / "prefix/current/bin/python3", "-c", "import addressed; open('prefix/current/data/lines/a.jsonl')")
    print("data are added to the environment")

    # Packed with the environment's own job, they are all that a delta carries; what was added makes room for them.
    job = (work / "all/job.toml").read_text().replace("version = 1\n", "version = 2\n", 1)
    (work / "all/job.toml").write_text(job + '[[data]]\nsource = "../lines"\n')
    run(BIN / "sealift-pack", "lock", "all/job.toml", "--uv", UV)
    (work / "inventory").write_text(run(BIN / "sealift-install", "inventory", "--prefix", work / "prefix"))
    run(BIN / "sealift-pack", "create", "all/demo.lock.toml", "--base", "inventory", "--root", "keys/root.1.json", "--key",
        "keys/release.key", "-o", "bundle", "--installer", BIN / "sealift-install", "--no-rehearsal")
    carried = sum(file.stat().st_size for file in (work / "bundle/demo-2").glob("*.vol*"))
    if carried > 1 << 16:
        sys.exit(f"failed: the delta carries {carried} bytes")
    run(BIN / "sealift-install", "apply", "bundle/demo-2", "--prefix", work / "prefix", "--drop-added")
    run(work / "prefix/current/bin/python3", "-c", "import addressed; open('prefix/current/data/lines/a.jsonl')")
    print(f"data join the environment by a delta of {carried} bytes")


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder).resolve())
