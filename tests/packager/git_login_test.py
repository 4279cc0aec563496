#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A job whose repository needs a password, locked by the real uv and git against a server on the loopback: no argument
# of any process, no file and no message holds the password. Needs uv, git, bubblewrap and patchelf; else skipped (77).
#   git_login_test.py BIN UV
import base64
import http.server
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tiny_index import arguments_of_all

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHON, PASSWORD = "/usr/bin/python3.11", "top-secret-word"
if not (UV.exists() and os.path.exists(PYTHON) and all(map(shutil.which, ("git", "bwrap", "patchelf")))):
    print("skipped: needs uv, python3.11, git, bubblewrap and patchelf")
    sys.exit(77)

BACKEND = """
import base64, hashlib, os, zipfile
def build_wheel(folder, settings=None, metadata=None):
    info = "demo-1.0.dist-info/"
    files = {"demo/__init__.py": b"", info + "METADATA": b"Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n",
             info + "WHEEL": b"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
    record = ""
    with zipfile.ZipFile(os.path.join(folder, "demo-1.0-py3-none-any.whl"), "w") as archive:
        for path, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += "%s,sha256=%s,%d\\n" % (path, digest, len(data))
            archive.writestr(zipfile.ZipInfo(path), data)
        archive.writestr(zipfile.ZipInfo(info + "RECORD"), record + info + "RECORD,,\\n")
    return "demo-1.0-py3-none-any.whl"
"""
PROJECT = """[project]
name = "demo"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


class Repository(http.server.SimpleHTTPRequestHandler):
    """git's plain HTTP, behind a password; while a client waits, its arguments are looked at."""

    def do_GET(self):
        self.server.seen += [line for line in arguments_of_all() if PASSWORD.encode() in line]
        given = self.headers.get("Authorization", "")
        if given != "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode():
            self.server.strangers += 1
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="r"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.server.guests += 1
        super().do_GET()

    def log_message(self, *_):
        pass


def main(work):
    source = work / "source"
    source.mkdir()
    (source / "backend.py").write_text(BACKEND)
    (source / "pyproject.toml").write_text(PROJECT)
    git = lambda *words: subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t.invalid", *map(str, words)],
                                        cwd=source, check=True, capture_output=True)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    (work / "served").mkdir()
    git("clone", "--quiet", "--bare", source, work / "served/demo.git")
    git("--git-dir", work / "served/demo.git", "update-server-info")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *words: Repository(*words, directory=str(work / "served")))
    server.seen, server.strangers, server.guests = [], 0, 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{server.server_address[1]}"

    # A git in front of git, which writes down how it was called.
    (work / "bin").mkdir()
    wrapper, called = work / "bin/git", work / "called"
    wrapper.write_text(f'#!/bin/sh\nprintf "%s " "$@" >> "{called}"; echo >> "{called}"\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    (work / "index").mkdir()

    def lock(requirement):
        called.unlink(missing_ok=True)
        (work / "job.toml").write_text(
            f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n'
            f'interpreter = "{PYTHON}"\nrequirements = ["{requirement}"]\nimports = ["demo"]\n'
            f'default_index = "file://{work}/index"\n')
        environment = {"PATH": f"{work}/bin:{os.environ['PATH']}", "HOME": str(work / "home"), "TOKEN": PASSWORD,
                       "SEALIFT_CACHE": str(work / "cache"), "SEALIFT_UV": str(UV), "UV_CACHE_DIR": str(work / "uv")}
        return subprocess.run([BIN / "sealift-pack", "lock", "job.toml"], env=environment, cwd=work, text=True,
                              capture_output=True)

    def check(that, *words):
        if not that:
            sys.exit(f"failed: {words}")

    def check_silence(result, what):
        check(not server.seen, what, server.seen)
        check(PASSWORD not in result.stdout + result.stderr, what, result)
        calls = called.read_text() if called.exists() else ""
        check(PASSWORD not in calls, what, calls)
        for file in work.rglob("*"):
            if file.is_file() and not file.is_symlink() and file != work / "job.toml":
                check(PASSWORD.encode() not in file.read_bytes(), what, file)

    for name, login in (("its own words", f"me:{PASSWORD}"), ("a variable", "me:${TOKEN}")):
        shutil.rmtree(work / "uv", ignore_errors=True)
        server.guests = 0
        result = lock(f"demo @ git+http://{login}@{host}/demo.git")
        check(result.returncode == 0, result)
        check(server.guests > 1 and "fetch" in called.read_text() and "clone" in called.read_text(), called.read_text())
        check_silence(result, name)
        check(f"http://{host}/demo.git" in (work / "demo.lock.toml").read_text(), "the lock names the repository")
        print(f"a login by {name}: locked, and the password was nowhere to be seen")

    shutil.rmtree(work / "uv")
    result = lock(f"demo @ git+http://me:wrong-{PASSWORD}@{host}/demo.git")
    check(result.returncode != 0 and result.returncode != 2, result)
    check_silence(result, "wrong password")
    print("a wrong password is refused by the server, and not shown")

    server.strangers = server.guests = 0
    result = lock(f"demo @ git+http://me:{PASSWORD}@x@{host}/demo.git")
    check(result.returncode == 2 and "cannot be told from its host" in result.stderr, result)
    check(server.strangers == server.guests == 0 and not called.exists(), "nobody was asked")
    check_silence(result, "malformed")
    print("a login that cannot be told from its host is refused before uv starts")


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder).resolve())
