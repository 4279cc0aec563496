#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Projects and locks as people have them, each locked by the program with the real uv, against an index on the loopback:
# what is in the lock is what uv or pip would install. Needs uv, git, bubblewrap and patchelf; else skipped (77).
#   projects_test.py BIN UV
import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tiny_index import write_wheel

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHON = "/usr/bin/python3.11"
if not (UV.exists() and os.path.exists(PYTHON) and all(map(shutil.which, ("git", "bwrap", "patchelf")))):
    print("skipped: needs uv, python3.11, git, bubblewrap and patchelf")
    sys.exit(77)

# Packs its folder; what it requires stands in requires.txt.
BACKEND = """
import base64, hashlib, os, zipfile
NAME = {name!r}
def build_wheel(folder, settings=None, metadata=None):
    info = NAME + "-1.0.dist-info/"
    needs = open("requires.txt").read().split("\\n") if os.path.exists("requires.txt") else []
    files = {{NAME + "/__init__.py": b"", info + "WHEEL": b"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             info + "METADATA": ("Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: 1.0\\n" + "".join(
                 ("" if line.startswith("Provides") else "Requires-Dist: ") + line + "\\n" for line in needs if line)).encode()}}
    record = ""
    with zipfile.ZipFile(os.path.join(folder, NAME + "-1.0-py3-none-any.whl"), "w") as archive:
        for path, data in sorted(files.items()):
            record += path + ",sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() + ",%d\\n" % len(data)
            archive.writestr(zipfile.ZipInfo(path), data)
        archive.writestr(zipfile.ZipInfo(info + "RECORD"), record + info + "RECORD,,\\n")
    return NAME + "-1.0-py3-none-any.whl"
"""
BUILD_SYSTEM = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def do_POST(self):
        """Git LFS asks where objects are; the one that there is lies in large.bin."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        objects = [dict(one, actions={"download": {"href": f"http://{self.headers['Host']}/large.bin"}}) for one in asked["objects"]]
        text = json.dumps({"transfer": "basic", "objects": objects}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.git-lfs+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main(work):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Quiet(*words, directory=str(work / "served")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_address[1]}"
    for name in ("wanted", "other"):
        write_wheel(work / "served/simple" / name, name)
    torch = write_wheel(work / "served/whl/cu126/torch", "torch", "2.0+cu126")
    write_wheel(work / "served/simple/torch", "torch", "2.0")

    def project(folder, name, requires="", pyproject=BUILD_SYSTEM):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "backend.py").write_text(BACKEND.format(name=name))
        (folder / "requires.txt").write_text(requires)
        (folder / "pyproject.toml").write_text(pyproject)

    def lock(case, python):
        folder = work / case
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "job.toml").write_text(
            f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n'
            f'interpreter = "{PYTHON}"\ndefault_index = "{host}/simple"\n{python}\n')
        environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache"),
                       "SEALIFT_UV": str(UV), "UV_NO_CACHE": "1"}
        return subprocess.run([BIN / "sealift-pack", "lock", "job.toml"], env=environment, cwd=folder, text=True, capture_output=True)

    def expect(case, python, *wheels):
        result = lock(case, python)
        if result.returncode != 0:
            sys.exit(f"failed: {case}\n{result.stdout}\n{result.stderr}")
        got = sorted(re.findall(r'^file = "([^-]*-[^-]*)-', (work / case / "demo.lock.toml").read_text(), re.M))
        if got != sorted(wheels):
            sys.exit(f"failed: {case}: {got} in place of {sorted(wheels)}\n{result.stderr}")
        print(f"{case}: {', '.join(got)}")
        return result

    # Dependencies that only a build tells; the project itself is carried only where it is required, too.
    asked = 'pyproject = "pyproject.toml"'
    project(work / "poetry", "p", "wanted", '[tool.poetry]\nname = "p"\n[tool.poetry.dependencies]\nwanted = "*"\n' + BUILD_SYSTEM)
    expect("poetry", asked, "wanted-1.0")
    expect("poetry", asked + '\nrequirements = ["-e ."]', "wanted-1.0", "p-1.0")
    project(work / "setupcfg", "p", "wanted")
    (work / "setupcfg/setup.cfg").write_text("[options]\nname = no\n[metadata]\nname = p\n")
    expect("setupcfg", asked, "wanted-1.0")
    project(work / "dynamic", "p", 'Provides-Extra: more\nwanted>=1\nother; extra == "more"',
            '[project]\nname = "p"\nversion = "1.0"\ndynamic = ["dependencies", "optional-dependencies"]\n' + BUILD_SYSTEM)
    expect("dynamic", asked, "wanted-1.0")
    expect("dynamic", asked + '\nextras = ["more"]', "wanted-1.0", "other-1.0")
    project(work / "nameless", "p", "wanted")
    nameless = lock("nameless", asked)
    if nameless.returncode != 2 or 'NAME @' not in nameless.stderr:
        sys.exit(f"failed: nameless {nameless}")

    # Groups that include each other under other spellings.
    (work / "groups").mkdir()
    (work / "groups/pyproject.toml").write_text(
        '[project]\nname = "p"\nversion = "1.0"\ndependencies = []\n[dependency-groups]\nType_Check = ["wanted"]\n'
        'all = [{ include-group = "type-check" }, { include-group = "Deep.Er" }]\n"deep-er" = ["other"]\n')
    expect("groups", asked + '\ngroups = ["ALL"]', "wanted-1.0", "other-1.0")

    # A pylock with groups.
    entry = '[[packages]]\nname = "{0}"\nversion = "1.0"\nmarker = "\\"{1}\\" in dependency_groups"\n[[packages.wheels]]\nurl = "{2}"\nhashes = {{ sha256 = "{3}" }}\n'
    text = 'lock-version = "1.0"\ncreated-by = "x"\nextras = []\ndependency-groups = ["dev"]\ndefault-groups = ["default"]\n'
    for name, group in (("wanted", "default"), ("other", "dev")):
        path = f"simple/{name}/{name}-1.0-py3-none-any.whl"
        text += entry.format(name, group, f"{host}/{path}", sha256(work / "served" / path))
    (work / "pylock").mkdir()
    (work / "pylock/pylock.toml").write_text(text)
    expect("pylock", 'lock_file = "pylock.toml"', "wanted-1.0")
    expect("pylock", 'lock_file = "pylock.toml"\ngroups = ["dev"]', "wanted-1.0", "other-1.0")
    for name in ("wanted", "other"):  # beside the lock, and in no index under these names
        write_wheel(work / "pylock/w", f"{name}-here")
    here = text
    for name in ("wanted", "other"):
        path = f"w/{name}_here-1.0-py3-none-any.whl"
        here = here.replace(f'name = "{name}"', f'name = "{name}-here"')
        here = re.sub(f'url = ".*/{name}-1.0-py3-none-any.whl"\nhashes = {{ sha256 = ".*" }}', f'path = "{path}"\nhashes = {{ sha256 = "{sha256(work / "pylock" / path)}" }}', here)
    (work / "pylock/pylock.toml").write_text(here)
    expect("pylock", 'lock_file = "pylock.toml"\ngroups = ["dev"]', "wanted_here-1.0", "other_here-1.0")
    (work / "pylock/pylock.toml").write_text(text.replace('"default\\', '"no\\').replace('"default"', '"none"'))
    empty = lock("pylock", 'lock_file = "pylock.toml"')
    if empty.returncode != 2 or "no package of the lock" not in empty.stderr:
        sys.exit(f"failed: a lock of which nothing is taken {empty}")

    # A workspace whose uv.lock lies in a folder of its own, and extras whose packages come from an index of their own.
    project(work / "workspace/proj/packages/lib", "wslib", "", '[project]\nname = "wslib"\nversion = "1.0"\n' + BUILD_SYSTEM)
    head = "version = 1\nrevision = 3\nrequires-python = \">=3.11\"\n"
    (work / "workspace/proj/pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "0.1"\nrequires-python = ">=3.11"\ndependencies = ["wslib"]\n[tool.uv]\npackage = false\n'
        '[tool.uv.workspace]\nmembers = ["packages/*"]\n[tool.uv.sources]\nwslib = { workspace = true }\n')
    (work / "workspace/proj/uv.lock").write_text(
        head + '[manifest]\nmembers = ["app", "wslib"]\n[[package]]\nname = "app"\nversion = "0.1"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "wslib" }]\n[package.metadata]\nrequires-dist = [{ name = "wslib", editable = "packages/lib" }]\n'
        '[[package]]\nname = "wslib"\nversion = "1.0"\nsource = { editable = "packages/lib" }\n')
    expect("workspace", 'lock_file = "proj/uv.lock"', "wslib-1.0")
    text = head + '[[package]]\nname = "app"\nversion = "0.1"\nsource = { virtual = "." }\n[package.optional-dependencies]\n'
    for extra, index in (("cpu", "simple"), ("gpu", "whl/cu126")):
        version = "2.0" if extra == "cpu" else "2.0+cu126"
        text = text.replace("[package.optional-dependencies]\n", "[package.optional-dependencies]\n" + f'{extra} = [{{ name = "torch", version = "{version}", source = {{ registry = "{host}/{index}" }} }}]\n')
        wheel = work / "served" / index / f"torch/torch-{version}-py3-none-any.whl"
        text += (f'[[package]]\nname = "torch"\nversion = "{version}"\nsource = {{ registry = "{host}/{index}" }}\n'
                 f'wheels = [{{ url = "{host}/{index}/torch/{wheel.name.replace("+", "%2B")}", hash = "sha256:{sha256(wheel)}" }}]\n')
    (work / "conflict").mkdir()
    (work / "conflict/uv.lock").write_text(text.replace("[[package]]", 'conflicts = [[{ package = "app", extra = "cpu" }, { package = "app", extra = "gpu" }]]\n[[package]]', 1))
    (work / "conflict/pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "0.1"\nrequires-python = ">=3.11"\ndependencies = []\n[project.optional-dependencies]\n'
        'cpu = ["torch"]\ngpu = ["torch"]\n[tool.uv]\npackage = false\nconflicts = [[{ extra = "cpu" }, { extra = "gpu" }]]\n')
    expect("conflict", 'lock_file = "uv.lock"\nextras = ["gpu"]', "torch-2.0+cu126")

    # Repositories as pip's files have them.
    project(work / "eggs/repo", "eggpkg", 'other\nProvides-Extra: fast\nwanted; extra == "fast"', '[project]\nname = "eggpkg"\nversion = "1.0"\n[project.optional-dependencies]\nfast = ["wanted"]\n' + BUILD_SYSTEM)
    git = lambda *words: subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", "-C", str(work / "eggs/repo"), *words],
                                        check=True, capture_output=True)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    git("tag", "v1")
    for line in (f"-e git+file://{work}/eggs/repo@v1#egg=eggpkg[fast]", f"--editable=git+file://{work}/eggs/repo@v1#egg=eggpkg[fast]",
                 f"git+file://{work}/eggs/repo@v1#egg=eggpkg[fast]"):
        (work / "eggs/all.txt").write_text(line + "\n")
        # Its wheel requires one more than its table says.
        expect("eggs", 'requirements_file = "all.txt"', "eggpkg-1.0", "wanted-1.0", "other-1.0")

    # A repository with a file that Git LFS has, fetched from the server that the repository names.
    if shutil.which("git-lfs"):
        large = b"\0" * 100 + os.urandom(30000)
        project(work / "large/repo", "largepkg", "", '[project]\nname = "largepkg"\nversion = "1.0"\n' + BUILD_SYSTEM)
        (work / "large/repo/backend.py").write_text(BACKEND.format(name="largepkg").replace(
            'NAME + "/__init__.py": b""', 'NAME + "/__init__.py": b"", NAME + "/table.bin": open("table.bin", "rb").read()'))
        (work / "large/repo/.gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        (work / "large/repo/.lfsconfig").write_text(f"[lfs]\n\turl = {host}/lfs\n")
        (work / "large/repo/table.bin").write_bytes(large)
        (work / "served/large.bin").write_bytes(large)
        in_repository = lambda *words: subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", "-C", str(work / "large/repo"), *words],
                                                      check=True, capture_output=True, text=True).stdout
        in_repository("init", "--quiet")
        in_repository("lfs", "install", "--local")
        in_repository("add", ".")
        in_repository("commit", "--quiet", "-m", "one")
        if "git-lfs" not in in_repository("cat-file", "-p", "HEAD:table.bin"):
            sys.exit("failed: the repository has the file itself, and no pointer")
        shutil.rmtree(work / "large/repo/.git/lfs/objects")
        (work / "large/repo/table.bin").write_bytes(b"")
        expect("large", f'requirements = ["largepkg @ git+file://{work}/large/repo"]', "largepkg-1.0")
        built = re.search(r'^sha256 = "(\w{64})"', (work / "large/demo.lock.toml").read_text().split('file = "largepkg')[1], re.M).group(1)
        with zipfile.ZipFile(work / "cache/sha256" / built) as wheel:
            if wheel.read("largepkg/table.bin") != large:
                sys.exit("failed: the wheel has a pointer where the file should be")
    else:
        print("left out: no git-lfs")

    # A build for one CUDA: the remedy, word for word, ends in a lock.
    asked = 'requirements = ["torch==2.0+cu126"]'
    refused = lock("torch", asked)
    remedy = re.findall(r'^ *(torch_backend = ".*")$', refused.stderr, re.M)
    if refused.returncode != 7 or remedy != ['torch_backend = "cu126"'] or "[python]" not in refused.stderr:
        sys.exit(f"failed: torch {refused}")
    expect("torch", f'{asked}\n{remedy[0]}\ntorch_index = "{host}/whl"', "torch-2.0+cu126")  # a made index in place of PyTorch's


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder).resolve())
