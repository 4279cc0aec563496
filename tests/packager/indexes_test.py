#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Indexes as servers of companies and object stores are, on the loopback: signed addresses, 403 for what is not there, lost
# metadata, `+` in names, MD5 alone, no ranges, compressed answers, limits. `lock` and `create` take what uv takes, and
# no token stands anywhere. Needs uv and patchelf; without them it is skipped (77).
#   indexes_test.py BIN UV [CASE...]
import base64
import gzip
import hashlib
import http.server
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tiny_index import Answers, wheel_of

BIN, UV, ONLY = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
PYTHON, TOKEN = "/usr/bin/python3.11", "top-secret-token"
if not (UV.exists() and os.path.exists(PYTHON) and shutil.which("patchelf") and shutil.which("bwrap")):
    print("skipped: needs uv, python3.11, patchelf and bubblewrap")
    sys.exit(77)


BACKEND = '''import os, zipfile, base64, hashlib
def prepare_metadata_for_build_wheel(folder, settings=None):
    os.makedirs(folder + "/src-1.0.dist-info")
    open(folder + "/src-1.0.dist-info/METADATA", "w").write("Metadata-Version: 2.1\\nName: src\\nVersion: 1.0\\n")
    return "src-1.0.dist-info"
def build_wheel(folder, settings=None, metadata=None):
    files = {"src.py": b"", "src-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\\nName: src\\nVersion: 1.0\\n",
             "src-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    record = ""
    with zipfile.ZipFile(folder + "/src-1.0-py3-none-any.whl", "w") as z:
        for path, data in files.items():
            record += "%s,sha256=%s,%d\\n" % (path, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
            z.writestr(zipfile.ZipInfo(path), data)
        z.writestr(zipfile.ZipInfo("src-1.0.dist-info/RECORD"), record + "src-1.0.dist-info/RECORD,,\\n")
    return "src-1.0-py3-none-any.whl"
'''


def source():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in {"src-1.0/pyproject.toml": '[project]\nname = "src"\nversion = "1.0"\n[build-system]\nrequires = []\n'
                           'build-backend = "backend"\nbackend-path = ["."]\n', "src-1.0/backend.py": BACKEND,
                           "src-1.0/PKG-INFO": "Metadata-Version: 2.2\nName: src\nVersion: 1.0\n"}.items():
            info = tarfile.TarInfo(path)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Index(Answers):
    def do_GET(self):
        site = self.server
        address = urllib.parse.urlsplit(self.path)
        site.asked.append((self.command, self.path, self.headers.get("Range", "")))
        parts = address.path.strip("/").split("/")
        if parts[0] in ("simple", "other"):
            if parts[0] == "other" and site.kind == "forbidden":
                return self.answer(403, b"AccessDenied")
            if parts[0] == "other" or len(parts) != 2 or parts[1] not in site.projects:
                return self.answer(404)
            if site.kind == "limit" and site.limits > 0:
                site.limits -= 1
                site.times.append(time.monotonic())
                return self.answer(429, Retry_After="2")
            page = ""
            for file in site.projects[parts[1]]:
                data = site.files[file]
                digest = f"#md5={hashlib.md5(data).hexdigest()}" if site.kind == "md5" else "" if site.kind == "nohash" else f"#sha256={hashlib.sha256(data).hexdigest()}"
                more = ' data-core-metadata="true" data-dist-info-metadata="true"' if site.kind == "metadata" else ""
                query = ""
                if site.kind == "signed":
                    site.signature += 1
                    query = f"?X-Amz-Expires=60&amp;X-Amz-Signature={TOKEN}-{site.signature}"
                quoted = file if site.kind == "plus" else urllib.parse.quote(file)
                page += f'<a href="../../files/{quoted}{query}{digest}"{more}>{file}</a>\n'
            return self.answer(200, page.encode(), Content_Type="text/html")
        if parts[0] != "files":
            return self.answer(404)
        name = parts[1]
        if site.kind == "plus":  # object stores take + for a space
            name = name.replace("+", " ")
        name = urllib.parse.unquote(name)
        data = site.files.get(name)
        if data is None:
            return self.answer(404)
        if site.kind == "signed":
            given = urllib.parse.parse_qs(address.query).get("X-Amz-Signature", [""])[0]
            if given != f"{TOKEN}-{site.signature}" and not (given.startswith(TOKEN) and int(given.rsplit("-", 1)[1]) > site.expired):
                return self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        if site.kind == "limit-files" and site.limits > 0 and self.command == "GET":
            site.limits -= 1
            site.times.append(time.monotonic())
            return self.answer(429, Retry_After="2")
        if site.kind == "limit-always" and self.command == "GET":
            return self.answer(429, Retry_After="1")
        if site.kind == "gzip":
            return self.answer(200, gzip.compress(data) if name.endswith(".whl") else data, Content_Encoding="gzip")
        given = self.headers.get("Range", "")
        if given and site.kind != "noranges":
            begin, end = given.removeprefix("bytes=").split("-")
            first = int(begin) if begin else len(data) - int(end)
            last = int(end) if begin and end else len(data) - 1
            return self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}")
        self.answer(200, data, **({} if site.kind == "noranges" else {"Accept_Ranges": "bytes"}))

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.kind, server.asked, server.signature, server.expired, server.limits, server.times = "", [], 0, 0, 0, []
    server.files = {"demo-1.0-py3-none-any.whl": wheel_of("demo", "1.0"), "src-1.0.tar.gz": source(),
                    "plus-1.0+cu12-py3-none-any.whl": wheel_of("plus", "1.0+cu12")}
    server.projects = {name.split("-")[0]: [name] for name in server.files}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def main(work):
    site, url = serve()
    (work / "home").mkdir()

    def run(*words, **variables):
        environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache"),
                       "SEALIFT_UV": str(UV), "UV_NO_CACHE": "1", **variables}
        return subprocess.run([*map(str, words)], env=environment, cwd=work, text=True, capture_output=True)

    def check(that, *words):
        if not that:
            sys.exit(f"failed: {words}")

    def job(wanted, more=""):
        (work / "job.toml").write_text(f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n'
                                       f'interpreter = "{PYTHON}"\nrequirements = ["{wanted}"]\ndefault_index = "{url}/simple"\n{more}')

    def begin(kind, limits=1):
        for name in ("out", "cache"):
            shutil.rmtree(work / name, ignore_errors=True)
        for file in [*work.glob("*lock*.toml")]:
            file.unlink()
        site.kind, site.limits, site.times, site.asked = kind, limits, [], []

    def no_token(*results):
        for result in results:
            check(TOKEN not in result.stdout + result.stderr, result)
        for file in work.rglob("*"):
            if file.is_file() and not file.is_symlink():
                check(TOKEN.encode() not in file.read_bytes(), file)

    lock = lambda **variables: run(BIN / "sealift-pack", "lock", "job.toml", **variables)
    create = lambda **variables: run(BIN / "sealift-pack", "create", "demo.lock.toml", "--root", "keys/root.1.json", "--key",
                                     "keys/release.key", "-o", "out", "--no-rehearsal", **variables)
    check(run(BIN / "sealift-pack", "keygen", "keys").returncode == 0, "keygen")

    def both(kind, wanted, limits=1):
        begin(kind, limits)
        job(wanted)
        locked = lock()
        check(locked.returncode == 0, kind, wanted, locked)
        site.limits, site.expired = limits, site.signature  # what was signed until now is no longer taken
        if wanted != "src":  # which create takes as it was built
            (work / "cache/sha256" / hashlib.sha256(site.files[site.projects[wanted][0]]).hexdigest()).unlink(missing_ok=True)
        created = create()
        check(created.returncode == 0, kind, wanted, created)
        return locked, created

    for wanted in ("demo", "src"):
        both("", wanted)
        no_token(*both("signed", wanted))
        check("signed_pages" in (work / "demo.lock.toml").read_text(), "the page is in the lock")
    print("a signed address stands nowhere, and create asks the index again")

    begin("")
    job(f"demo @ {url}/files/demo-1.0-py3-none-any.whl?token={TOKEN}")
    refused = lock()
    check(refused.returncode == 2 and "holds a token" in refused.stderr and TOKEN not in refused.stderr, refused)
    job(f"demo @ {url}/files/demo-1.0-py3-none-any.whl?raw=true")
    check(lock().returncode == 0, "a query that is no token")
    print("a token in the job's own address is refused, with a way on")

    both("metadata", "demo")
    both("plus", "plus")
    print("metadata that is promised and not there is read from the wheel; + is asked for as %2B")
    for wanted in ("demo", "src"):
        both("md5", wanted)
        digest = hashlib.sha256(site.files[site.projects[wanted][0]]).hexdigest()
        check(digest in (work / "demo.lock.toml").read_text(), "pinned by SHA-256")
    both("nohash", "demo")
    both("noranges", "demo")
    for wanted in ("demo", "src"):
        both("gzip", wanted)
    print("an MD5 alone, no hash, no ranges and files that are compressed on their way are taken")

    begin("forbidden")  # 403 for each name that an object store does not have
    other = f'indexes = [{{ url = "{url}/other" }}]\n'
    job("demo", other)
    refused = lock()
    check(refused.returncode == 12 and "answers 403: it does not have a package, or it wants a login" in refused.stderr, refused)
    check("write \"machine 127.0.0.1 login" in refused.stderr and "proxy" not in refused.stderr, refused)
    pasted = re.search(r'^ +(index_strategy = ".*")$', refused.stderr, re.M)
    check(pasted, refused)
    job("demo", other + pasted[1] + "\n")
    locked = lock()
    check(locked.returncode == 0 and "dependency confusion" in locked.stderr, locked)
    job("nothing", other + pasted[1] + "\n")
    refused = lock()
    check(refused.returncode == 7 and "none of the indexes" in refused.stderr, refused)
    print("403 of an index is told as two things; the line that is printed takes the name from the next index")

    both("limit", "demo")
    locked, created = both("limit-files", "demo")
    check("follows in 2 s, as the server asks" in created.stderr, created)
    begin("")
    job("demo")
    check(lock().returncode == 0, "lock")
    site.kind = "limit-always"
    refused = create()
    check(refused.returncode == 12 and "limits how often it is asked (429)" in refused.stderr, refused)
    check("wait until" in refused.stderr and "login" not in refused.stderr and "proxy" not in refused.stderr, refused)
    print("a limit is waited for, with a line, and named at the end")

    begin("")
    (work / "home/.config/pip").mkdir(parents=True)
    (work / "home/.config/pip/pip.conf").write_text(f"[global]\nindex-url = {url}/other\ntimeout = 5\n")
    (work / "home/.config/uv").mkdir()
    (work / "home/.config/uv/uv.toml").write_text('exclude-newer = "2020-01-01"\n[pip]\nprerelease = "allow"\n')
    (work / "pyproject.toml").write_text('[project]\nname = "mine"\nversion = "1"\ndependencies = ["demo"]\n'
                                         '[tool.uv]\nconstraint-dependencies = ["demo<1"]\npackage = false\n')
    job("demo", 'pyproject = "pyproject.toml"\n')
    locked = lock(PIP_CONSTRAINT="none.txt", UV_PRERELEASE="allow", PIP_TIMEOUT="3")
    check(locked.returncode == 0, locked)
    for said in ("pip/pip.conf: index-url decides nothing here", "uv.toml: exclude-newer", "uv.toml: prerelease", "UV_PRERELEASE is set",
                 "PIP_CONSTRAINT decides nothing here", "pyproject.toml: constraint-dependencies decides nothing here: the job does, in "
                 "[python] (constraints)"):
        check(said in locked.stderr, said, locked)
    for silent in ("timeout", "TIMEOUT", "package decides"):
        check(silent not in locked.stderr, silent, locked)
    print("settings of pip and uv that would change the resolution are named")


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder).resolve())
