#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# An index that wants a login, on the loopback: wherever uv takes the login from, `lock` and `create` take it too, give it
# to that server alone, and no argument of any process, no file and no message holds it. Needs uv and patchelf; without
# them it is skipped (77).
#   index_login_test.py BIN UV
import base64
import hashlib
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
from tiny_index import Answers, arguments_of_all, write_wheel

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PYTHON, PASSWORD, WHEEL = "/usr/bin/python3.11", "top-secret-word", "demo-1.0-py3-none-any.whl"
if not (UV.exists() and os.path.exists(PYTHON) and shutil.which("patchelf")):
    print("skipped: needs uv, python3.11 and patchelf")
    sys.exit(77)


class Index(Answers):
    """A page of links, and files: /files/ itself, /near/ by way of this server, /far/ by way of another one."""

    def do_GET(self):
        site, given = self.server, self.headers.get("Authorization", "")
        site.seen += [line for line in arguments_of_all() if PASSWORD.encode() in line]
        if site.open:
            site.logins_seen += [given] if given else []
        elif given != "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode() and not self.path.startswith(f"/{PASSWORD}/"):
            site.strangers += 1
            return self.answer(site.status, WWW_Authenticate='Basic realm="r"')
        path = self.path.removeprefix(f"/{PASSWORD}")
        if path.rstrip("/") == "/simple/demo":
            page = f'<a href="../../{site.way}/{WHEEL}#sha256={site.digest}">{WHEEL}</a>'
            return self.answer(200, page.encode(), Content_Type="text/html")
        if path == f"/files/{WHEEL}":
            site.sent += self.command == "GET"
            return self.answer(200, site.wheel)
        for way, where in (("/near/", ""), ("/far/", site.other)):
            if path == way + WHEEL:
                return self.answer(302, Location=f"{where}/files/{WHEEL}")
        self.answer(404)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def serve(wheel, is_open):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.wheel, server.digest, server.open, server.other = wheel, hashlib.sha256(wheel).hexdigest(), is_open, ""
    server.seen, server.logins_seen, server.strangers, server.sent, server.status, server.way = [], [], 0, 0, 401, "files"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"127.0.0.1:{server.server_address[1]}"


def main(work):
    wheel = write_wheel(work).read_bytes()
    site, host = serve(wheel, False)
    other, elsewhere = serve(wheel, True)
    site.other = f"http://{elsewhere}"
    (work / WHEEL).unlink()
    (work / "bin").mkdir()
    keyring = work / "bin/keyring"
    keyring.write_text('#!/bin/sh\n[ "$1 $2 $3" = "get %s me" ] && cat "$HOME/kept"\n' % host)
    keyring.chmod(0o755)
    outside = work.parent / "outside"  # where passwords may stand
    outside.mkdir()
    (outside / "kept").write_text(PASSWORD + "\n")
    (outside / "netrc").write_text(f"machine other.invalid login x password y\nmachine 127.0.0.1\n  login me\n  password {PASSWORD}\n")

    def run(*words, **variables):
        environment = {"PATH": f"{work}/bin:{os.environ['PATH']}", "HOME": str(outside), "SEALIFT_CACHE": str(work / "cache"),
                       "SEALIFT_UV": str(UV), "UV_NO_CACHE": "1", **variables}
        return subprocess.run([*map(str, words)], env=environment, cwd=work, text=True, capture_output=True)

    def check(that, *words):
        if not that:
            sys.exit(f"failed: {words}")

    def check_silence(*results):
        check(not site.seen and not other.seen, site.seen, other.seen)
        for result in results:
            check(PASSWORD not in result.stdout + result.stderr, result)
        for file in work.rglob("*"):
            if file.is_file() and not file.is_symlink():
                check(PASSWORD.encode() not in file.read_bytes(), file)

    def job(python):
        (outside / "job.toml").unlink(missing_ok=True)
        (work / "job.toml").write_text(f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\n'
                                       f'version = "3.11"\ninterpreter = "{PYTHON}"\nimports = ["demo"]\n{python}\n')

    def forget():
        shutil.rmtree(work / "out", ignore_errors=True)
        (work / "cache/sha256" / site.digest).unlink(missing_ok=True)
        site.seen, site.strangers, site.sent, other.seen, other.logins_seen, other.sent = [], 0, 0, [], [], 0

    lock = lambda **variables: run(BIN / "sealift-pack", "lock", "job.toml", **variables)
    create = lambda **variables: run(BIN / "sealift-pack", "create", "demo.lock.toml", "--root", "keys/root.1.json", "--key",
                                     "keys/release.key", "-o", "out", "--no-rehearsal", **variables)
    check(run(BIN / "sealift-pack", "keygen", "keys").returncode == 0, "keygen")
    index = f"http://{host}/simple"
    named = {"UV_INDEX_OURS_USERNAME": "me", "UV_INDEX_OURS_PASSWORD": PASSWORD}
    of_file = f'requirements_file = "{os.path.relpath(outside / "wanted.txt", work)}"'
    cases = [
        ("variables of a named index", f'requirements = ["demo"]\ndefault_index = "file://{work}/bin"\n'
         f'indexes = [{{ name = "ours", url = "{index}" }}]', "", named),
        ("variables of a named default index", f'requirements = ["demo"]\ndefault_index = {{ name = "ours", url = "{index}" }}', "", named),
        ("a netrc file", f'requirements = ["demo"]\ndefault_index = "{index}"', "", {"NETRC": str(outside / "netrc")}),
        ("a keyring", f'requirements = ["demo"]\ndefault_index = {{ name = "ours", url = "{index}" }}', "",
         {"UV_INDEX_OURS_USERNAME": "me", "UV_KEYRING_PROVIDER": "subprocess"}),
        ("UV_DEFAULT_INDEX", 'requirements = ["demo"]', "", {"UV_DEFAULT_INDEX": f"http://me:{PASSWORD}@{host}/simple"}),
        ("a requirements file", of_file, f"--index-url http://me:{PASSWORD}@{host}/simple\ndemo\n", {}),
        ("a variable in a requirements file", of_file, f"--index-url http://${{WHO}}:${{TOKEN}}@{host}/simple\ndemo\n",
         {"WHO": "me", "TOKEN": PASSWORD}),
        ("a variable in a file that one includes", of_file, "-r ${FOLDER}/more.txt\n",
         {"FOLDER": str(outside), "TOKEN": PASSWORD}),
        ("the address of a file", of_file, f"demo @ http://me:${{TOKEN}}@{host}/files/{WHEEL}\n", {"TOKEN": PASSWORD}),
        ("a variable in a path", of_file, f"--index-url http://{host}/${{TOKEN}}/simple\ndemo\n", {"TOKEN": PASSWORD}),
    ]
    (outside / "more.txt").write_text(f"--index-url http://me:${{TOKEN}}@{host}/simple\ndemo==1.0\n")
    for name, python, text, variables in cases:
        (outside / "wanted.txt").write_text(text)
        job(python)
        if text:  # what uv itself says
            peer = run(UV, "pip", "compile", "--no-config", "--quiet", outside / "wanted.txt", **variables)
            check(peer.returncode == 0 and "demo" in peer.stdout, name, peer)
        redirected = name in ("variables of a named index", "a netrc file", "a variable in a requirements file")
        for way in ("files", "near", "far") if redirected else ("files",):
            forget()
            site.way = way
            locked = lock(**variables)
            check(locked.returncode == 0, name, way, locked)
            forget()
            created = create(**variables)
            check(created.returncode == 0 and (other if way == "far" else site).sent == 1, name, way, site.sent, other.sent, created)
            check(not other.logins_seen, name, "the other server was given a login", other.logins_seen)
            check_silence(locked, created)
        print(f"{name}: locked and packed, and the password was nowhere to be seen")
    site.way = "files"

    # Without a login, or with a wrong one: what is missing is said, by name; with it all goes well.
    (outside / "wanted.txt").write_text("")
    job(cases[0][1])
    check(lock(**named).returncode == 0, "lock")
    for status in (401, 403):
        site.status = status
        for verb in (lock, create):
            for wrong in ({}, {**named, "UV_INDEX_OURS_PASSWORD": "wrong-word"}):
                forget()
                refused = verb(**wrong)
                check(refused.returncode == 12 and "login" in refused.stderr, status, refused)
                check("set UV_INDEX_OURS_USERNAME and UV_INDEX_OURS_PASSWORD" in refused.stderr, status, refused)
                check("wrong-word" not in refused.stderr and "proxy" not in refused.stderr, refused)
                check(site.strangers > 0, "it was asked")
    print("without a login, 401 and 403 name the variables that give one")
    job(f'requirements = ["demo"]\ndefault_index = "{index}"')
    refused = lock()
    check(refused.returncode == 12 and "machine 127.0.0.1 login NAME password PASSWORD" in refused.stderr, refused)
    (outside / "wanted.txt").write_text(f"--index-url http://me:${{TOKEN}}@{host}/simple\ndemo\n")
    job(of_file)
    refused = lock()
    check(refused.returncode == 12 and "${TOKEN}, and uv gets no such variable" in refused.stderr, refused)
    (outside / "wanted.txt").write_text(f"--index-url http://{host}/no-${{TOKEN}}/simple\ndemo\n")
    refused = lock(TOKEN=PASSWORD)
    check(refused.returncode == 12 and "/no-${TOKEN}/simple" in refused.stderr and PASSWORD not in refused.stderr, refused)
    print("an index without a name has netrc, and a variable that is not set is named")


with tempfile.TemporaryDirectory() as folder:
    (pathlib.Path(folder).resolve() / "work").mkdir()
    main(pathlib.Path(folder).resolve() / "work")
