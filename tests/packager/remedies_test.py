#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What refusals of builds, sources, indexes, data and libraries print, followed word for word: pasted into the job file,
# or run by a shell, then locked, created and applied, and what was refused is used inside. Those of wheels are in
# wheel_remedies_test.py. With the real uv, an index of made wheels and a registry of crates on the loopback; skipped
# (77) without uv, python3.11, bubblewrap or patchelf, single rows without their own tools.
#   remedies_test.py BIN UV [NAME...]
import base64
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile

BIN, UV, ONLY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
PYTHON = "/usr/bin/python3.11"
if not (UV.exists() and os.path.exists(PYTHON) and all(map(shutil.which, ("bwrap", "patchelf")))):
    print("skipped: needs uv, python3.11, bubblewrap and patchelf")
    sys.exit(77)

WHEEL = '''
import base64, hashlib, os, zipfile
def put(folder, name, version, files, needs=()):
    info = "%s-%s.dist-info/" % (name, version)
    files = dict(files, **{info + "METADATA": "Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (name, version)
                           + "".join(line + "\\n" for line in needs),
                           info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"})
    record = ""
    file = "%s-%s-py3-none-any.whl" % (name, version)
    with zipfile.ZipFile(os.path.join(folder, file), "w") as archive:
        for path, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\\n" % (path, digest, len(data))
            member = zipfile.ZipInfo(path)
            member.external_attr = 0o755 << 16
            archive.writestr(member, data)
        archive.writestr(info + "RECORD", record + info + "RECORD,,\\n")
    return file
'''
exec(WHEEL)
BACKEND = WHEEL + '''
def build_wheel(folder, settings=None, metadata=None):
BODY
    return put(folder, NAME, VERSION, {NAME + "/__init__.py": "made = 1\\n"})
'''


def project(folder, name, body, version='"1.0"', requires=(), table=True):
    folder.mkdir(parents=True)
    (folder / "backend.py").write_text(
        f"NAME = {name!r}\n" + BACKEND.replace("BODY", "    " + body).replace("VERSION,", version + ","))
    head = f'[project]\nname = "{name}"\ndynamic = ["version"]\n' if table else ""
    (folder / "pyproject.toml").write_text(head + f'[build-system]\nrequires = {json.dumps(list(requires))}\nbuild-backend = "backend"\n'
                                           'backend-path = ["."]\n')


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def registry(folder, url):
    """One crate, as a registry of one's own has it."""
    crate, text = io.BytesIO(), {"Cargo.toml": '[package]\nname = "tiny-crate"\nversion = "1.0.0"\nedition = "2021"\n',
                                 "src/lib.rs": "pub fn answer() -> i32 { 42 }\n"}
    with tarfile.open(fileobj=crate, mode="w:gz") as archive:
        for path, body in text.items():
            member = tarfile.TarInfo("tiny-crate-1.0.0/" + path)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body.encode()))
    (folder / "crates").mkdir(parents=True)
    (folder / "crates/tiny-crate-1.0.0.crate").write_bytes(crate.getvalue())
    (folder / "ti/ny").mkdir(parents=True)
    (folder / "ti/ny/tiny-crate").write_text(json.dumps({"name": "tiny-crate", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
                                                         "cksum": hashlib.sha256(crate.getvalue()).hexdigest()}) + "\n")
    (folder / "config.json").write_text(json.dumps({"dl": url + "/crates/{crate}-{version}.crate"}))


def main(work):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(work / "served")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    (work / "served").mkdir()
    index = work / "index"
    index.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache"), "SEALIFT_UV": str(UV),
                   "UV_NO_CACHE": "1"}
    for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")):
        environment[name] = os.environ.get(name, os.path.expanduser(f"~/{folder}"))

    def run(folder, *words):
        return subprocess.run([*map(str, words)], env=environment, cwd=folder, text=True, capture_output=True)

    def good(folder, *words):
        done = run(folder, *words)
        if done.returncode != 0:
            sys.exit(f"failed: {words}\n{done.stdout}\n{done.stderr}")
        return done

    good(work, BIN / "sealift-pack", "keygen", "keys")
    fingerprint = (work / "keys/root.fingerprint").read_text().strip()

    def lock(folder, asked, more=""):
        if asked is None:  # a job without [python]
            (folder / "job.toml").write_text(f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n{more}\n')
            return run(folder, BIN / "sealift-pack", "lock", "job.toml")
        own = "\n".join(line.removeprefix("#target ") for line in more.split("\n") if line.startswith("#target "))
        folder.mkdir(exist_ok=True)
        (folder / "requirements.txt").write_text(f"--no-index\n--find-links {index}\n")
        (folder / "job.toml").write_text(f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n{own}\n[python]\nversion = "3.11"\n'
                                         f'interpreter = "{PYTHON}"\nrequirements_file = "requirements.txt"\n{asked}\n{more}\n')
        return run(folder, BIN / "sealift-pack", "lock", "job.toml", *([] if shutil.which("uv") else ["--uv", UV]))

    def pasted(said):
        """What stands below "in the job file:", as people copy it."""
        lines = said[said.index("in the job file:"):].split("\n")[1:]
        return "\n".join(line.strip() for line in lines if re.match(r"            (\[|\S+ = )", line))

    def follow(name, asked, words, remedy, use, more=""):
        if ONLY and name not in ONLY:
            return
        folder = work / name
        folder.mkdir(exist_ok=True)
        create = ["demo.lock.toml", "--root", work / "keys/root.1.json", "--key", work / "keys/release.key", "-o", "bundle",
                  "--installer", BIN / "sealift-install", "--no-rehearsal"]
        refused = lock(folder, asked, more)
        if refused.returncode == 0:  # some causes are seen only in whole files
            refused = run(folder, BIN / "sealift-pack", "create", *create)
        if refused.returncode == 0 or words not in refused.stderr:
            sys.exit(f"failed: {name} is not refused for its cause ({refused.returncode})\n{refused.stderr}")
        now_asked, now_more = remedy(folder, asked, more, refused.stderr)
        locked = lock(folder, now_asked, now_more)
        if locked.returncode != 0:
            sys.exit(f"failed: {name}, after\n{now_asked}\n{now_more}\n{locked.stderr}")
        good(folder, BIN / "sealift-pack", "create", *create)
        good(folder, BIN / "sealift-install", "apply", "bundle/demo-1", "--prefix", folder / "prefix", "--fingerprint", fingerprint)
        use(folder / "prefix/current")
        print(f"{name}: installed after\n  " + ((now_asked or "") + "\n" + now_more).strip().replace("\n", "\n  "))
        shutil.rmtree(folder / "prefix", ignore_errors=True)

    def paste(folder, asked, more, said):
        text = pasted(said)
        before, _, after = text.partition("[python.")
        keys = "\n".join(line for line in before.split("\n") if line != "[python]")
        return asked + "\n" + keys, more + ("[python." + after if after else "")

    def imports(module):
        return lambda current: good(work, current / "bin/python3", "-c", f"import {module}")

    # Builds: a module, an older setuptools, a version that git has, a crate.
    put(index, "helper", "1.0", {"helper.py": ""})
    project(work / "module/pkg", "wantsmodule", "import helper")
    follow("module", 'requirements = ["wantsmodule @ ./pkg"]', "No module named 'helper'", paste, imports("wantsmodule"))

    put(index, "setuptools", "80.0", {"pkg_resources.py": ""})
    put(index, "setuptools", "82.0", {"setuptools.py": ""})
    project(work / "older/pkg", "wantsolder", "import pkg_resources", requires=["setuptools"])
    follow("older", 'requirements = ["wantsolder @ ./pkg"]', "No module named 'pkg_resources'", paste, imports("wantsolder"))

    project(work / "scm/pkg", "wants_scm", 'if "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_WANTS_SCM" not in os.environ: '
            'raise LookupError("setuptools-scm was unable to detect version for /x")', 'os.environ["SETUPTOOLS_SCM_PRETEND_VERSION_FOR_WANTS_SCM"]')
    follow("scm", 'requirements = ["wants-scm @ ./pkg"]', "its version comes from git", paste, imports("wants_scm"))

    if os.path.exists(environment["CARGO_HOME"] + "/bin/cargo") or shutil.which("cargo"):
        registry(work / "served/crates-io", url + "/crates-io")
        project(work / "cargo/pkg", "wantscrate", 'import subprocess; subprocess.run(["cargo", "build", "--release"], check=True)')
        (work / "cargo/pkg/Cargo.toml").write_text('[package]\nname = "wantscrate"\nversion = "1.0.0"\nedition = "2021"\n[dependencies]\n'
                                                   'tiny-crate = { version = "1", registry = "made" }\n')
        (work / "cargo/pkg/src").mkdir()
        (work / "cargo/pkg/src/main.rs").write_text('fn main() { println!("{}", tiny_crate::answer()); }\n')
        (work / "cargo/pkg/.cargo").mkdir()
        (work / "cargo/pkg/.cargo/config.toml").write_text(f'[registries.made]\nindex = "sparse+{url}/crates-io/"\n')

        def vendor(folder, asked, more, said):
            command = re.search(r"run, in a folder with its source, (.*?), and name that folder in requirements, \"(.*?)\"", said)
            if not command:
                sys.exit(f"failed: cargo\n{said}")
            good(folder / "pkg", "sh", "-c", command[1])
            return f'requirements = ["{command[2].replace("FOLDER", "pkg")}"]', more

        follow("cargo", 'requirements = ["wantscrate @ ./pkg"]', "builds have no network", vendor, imports("wantscrate"))
    else:
        print("left out: no cargo")

    # Sources: a name that only the source's code knows.
    def named(folder, asked, more, said):
        written = re.search(r'write "(NAME @ \./folder)" in requirements', said)
        return f'requirements = ["{written[1].replace("NAME", "nameless").replace("folder", "pkg")}"]', more

    project(work / "nameless/pkg", "nameless", "pass", table=False)
    follow("nameless", 'requirements = ["./pkg"]', "a source whose package name is known only", named, imports("nameless"))

    # Data: names that differ in case only, and names that no bundle can have; a space in the folder's name.
    def packed(folder, asked, more, said):
        command = re.search(r"keeps every name: (.*?), then (source = .*)", said)
        if not command:
            sys.exit(f"failed: data\n{said}")
        good(folder, "sh", "-c", command[1])
        return asked, f"[[data]]\n{command[2]}\n"

    put(index, "plain", "1.0", {"plain.py": ""})
    for name, names in (("case", ["Row.txt", "row.txt"]), ("names", ["a\\b.txt"])):
        (work / name / "my rows").mkdir(parents=True)
        for file in names:
            (work / name / "my rows" / file).write_text(file)
        follow(name, 'requirements = ["plain"]', "which keeps every name", packed, lambda current: good(
            work, "tar", "-tf", current / "data/my rows.packed/my rows.tar"), '[[data]]\nsource = "my rows"\n')

    # A model with a pickle, in a job without [python].
    (work / "pickle/weights").mkdir(parents=True)
    head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    for file, data in (("config.json", b"{}"), ("model.safetensors", len(head).to_bytes(8, "little") + head + bytes(4)),
                       ("tokenizer.json", b"{}"), ("scheduler.pkl", pickle.dumps({"step": 1}))):
        (work / "pickle/weights" / file).write_bytes(data)

    def allowed(folder, asked, more, said):
        return asked, more + re.search(r"allow_pickle = true", said)[0] + "\n"

    follow("pickle", None, "pickle", allowed, lambda current: (current / "models/weights/scheduler.pkl").read_bytes(),
           '[[model]]\nsource = "weights"\n')

    # An image of a folder that has two, in a job without [python].
    def image(folder, tags):
        (folder / "blobs/sha256").mkdir(parents=True)

        def blob(data):
            digest = hashlib.sha256(data).hexdigest()
            (folder / "blobs/sha256" / digest).write_bytes(data)
            return {"digest": "sha256:" + digest, "size": len(data)}

        listed = []
        for tag in tags:
            layer = io.BytesIO()
            with tarfile.open(fileobj=layer, mode="w") as archive:
                member = tarfile.TarInfo("tag.txt")
                member.size = len(tag)
                archive.addfile(member, io.BytesIO(tag.encode()))
            described = blob(layer.getvalue())
            config = blob(json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
                "type": "layers", "diff_ids": [described["digest"]]}}).encode())
            kind = "application/vnd.oci.image."
            manifest = blob(json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": config | {
                "mediaType": kind + "config.v1+json"}, "layers": [described | {"mediaType": kind + "layer.v1.tar"}]}).encode())
            listed.append(manifest | {"mediaType": kind + "manifest.v1+json", "annotations": {"org.opencontainers.image.ref.name": tag}})
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": listed}))

    if shutil.which("skopeo"):
        image(work / "image/images", ["one", "two"])

        def tagged(folder, asked, more, said):
            written = re.search(r'source = ".*:TAG"', said)
            return asked, more.split("\n")[0] + "\n" + written[0].replace("TAG", "two") + '\nname = "ours/app"\ntag = "2"\n'

        follow("image", None, "an OCI folder has several images", tagged, lambda current: None,
               '[[image]]\nsource = "oci:images"\nname = "ours/app"\ntag = "2"\n')

    # Debian packages: of a mirror that is frozen on purpose, and a name that several packages stand for.
    if shutil.which("apt-get"):
        pool, packages = work / "pool", ""
        pool.mkdir()
        for name, more in (("alpha", ""), ("mailer-one", "Provides: mailer\n"), ("mailer-two", "Provides: mailer\n")):
            data = name.encode()
            (pool / f"{name}_1_amd64.deb").write_bytes(data)
            packages += (f"Package: {name}\nVersion: 1\nArchitecture: amd64\n{more}Filename: ./{name}_1_amd64.deb\nSize: {len(data)}\n"
                         f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")
        (pool / "Packages").write_text(packages)
        shutil.copytree(pool, work / "frozen-pool")
        (work / "frozen-pool/Release").write_text(
            "Suite: frozen\nCodename: frozen\nDate: Thu, 01 Jan 2015 00:00:00 UTC\nValid-Until: Thu, 08 Jan 2015 00:00:00 UTC\nSHA256:\n"
            f" {hashlib.sha256(packages.encode()).hexdigest()} {len(packages)} Packages\n")
        apt = '[apt]\npackages = ["{}"]\nsources = ["deb [trusted=yes] file:{} ./"]\n'

        def unfrozen(folder, asked, more, said):
            option = re.search(r'sources = \["deb \[(check-valid-until=no)\]', said)
            return asked, more.replace("[trusted=yes]", f"[trusted=yes {option[1]}]")

        def provider(folder, asked, more, said):
            one = re.search(r"mailer-one|mailer-two", said)
            if "name the package that you want in its place" not in said:
                sys.exit(f"failed: virtual\n{said}")
            return asked, more.replace('"mailer"', f'"{one[0]}"')

        there = lambda name: lambda current: next((current / "apt").glob(name + "*_1_amd64.deb")).read_bytes()
        follow("frozen", None, "no longer valid, by their own date", unfrozen, there("alpha"), apt.format("alpha", work / "frozen-pool"))
        follow("virtual", None, "packages are virtual", provider, there("mailer"), apt.format("mailer", pool))

    # A library that nobody brings: of this machine, or of the target's own stack.
    if shutil.which("gcc"):
        (work / "made").mkdir()
        (work / "made/a.c").write_text("int begin(void) { return 0; }\n")
        (work / "made/b.c").write_text("int begin(void); int there(void) { return begin(); }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libvendorcl.so", "-o", "libvendorcl.so", "a.c"], cwd=work / "made", check=True)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libnpu.so", "b.c", "./libvendorcl.so"], cwd=work / "made", check=True)
        put(index, "wantsstack", "1.0", {"wantsstack/__init__.py": "", "wantsstack/libnpu.so": (work / "made/libnpu.so").read_bytes()})

        def target(folder, asked, more, said):
            listed = re.search(r"^ +(host_libraries = .*)$", said, re.M)
            if not listed:
                sys.exit(f"failed: host\n{said}")
            return asked, more + "\n#target " + listed[1]

        # A package for another CUDA, which an extra asks for.
        for name in ("libcudart.so.13", "libcudart.so.12"):
            subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", name, "a.c"], cwd=work / "made", check=True)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libarrays.so", "b.c", "./libcudart.so.12"], cwd=work / "made", check=True)
        bytes_of = lambda name: (work / "made" / name).read_bytes()
        put(index, "nvidia_cuda_runtime", "13.0.0", {"nvidia/cu13/lib/libcudart.so.13": bytes_of("libcudart.so.13")})
        put(index, "arrays_cuda12x", "1.0", {"arrays/__init__.py": "", "arrays/libarrays.so": bytes_of("libarrays.so")})
        put(index, "raylike", "1.0", {"raylike.py": ""}, ["Provides-Extra: graph", 'Requires-Dist: arrays-cuda12x; extra == "graph"'])

        def excluded(folder, asked, more, said):
            listed = re.search(r"asked for by raylike\[graph\].*?^ +(excludes = .*?)$", said, re.M | re.S)
            if not listed:
                sys.exit(f"failed: cuda\n{said}")
            return asked + "\n" + listed[1], more

        follow("no_cuda", 'requirements = ["raylike[graph]"]', "is for CUDA 12, and the bundle carries none", excluded, imports("raylike"))
        follow("cuda", 'requirements = ["raylike[graph]", "nvidia-cuda-runtime"]', "is for CUDA 12, and the bundle carries CUDA 13", excluded,
               imports("raylike"))
        follow("host", 'requirements = ["wantsstack"]', "libvendorcl.so is not in the bundle", target, imports("wantsstack"))


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder).resolve())
