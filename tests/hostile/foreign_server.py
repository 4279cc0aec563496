# SPDX-License-Identifier: Apache-2.0
# Hostile servers that `sealift-pack lock` and `create` ask: each script beside this one has one kind, which answers as it
# should but for one thing that was changed, doubled, cut, redirected or made endless. The real program ends with a code
# of its list, in time, within memory and disk; it carries no file of this machine, and types nothing into a terminal.
import base64
import copy
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse
import zlib
import zipfile

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
TRIES = int(sys.argv[3]) if len(sys.argv) > 3 else 4  # random changes, beside the listed ones
random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
PYTHON = "/usr/bin/python3.11"
CANARY = b"a secret of this machine, which no bundle carries"
NASTY = ["", "\x1b]0;owned\x07", "\x9b31m", "\u202eexe", "\u200b", "a\nerror[io]: forged", "../../etc/passwd", "/etc/passwd", "x" * 70_000,
         -1, 0, 1 << 62, 1 << 70, 1.5, None, True, [], {}, [[]], "file:///etc/passwd", "sha256:" + "0" * 64, "sha256:../../x"]
BAD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
CODES = set(range(0, 17)) - {1}
SECONDS, MEMORY, DISK = 120, 2 << 30, 1200 << 20  # a GiB is what an index may have
failures, tries = [], 0
work = environment = canary = None  # of the run, see main()
BLOCK = b"\0" * (1 << 20)


class Endless:
    """A body that says no length and does not end; of these bytes, over and over."""
    def __init__(self, block=BLOCK, most=2 << 30):
        self.block, self.most = block, most


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = urllib.parse.unquote(self.path)
        answer = self.server.routes.get(path) or self.server.routes.get(path.split("?")[0])
        if answer is None:
            return self.send(404, b"none")
        status, body, headers = (*answer, {})[:3] if isinstance(answer, tuple) else (200, answer, {})
        self.send(status, body, headers)

    do_HEAD = do_GET

    def send(self, status, body, headers=None):
        endless = isinstance(body, Endless)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if endless:
            self.send_header("Transfer-Encoding", "chunked")
        elif "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            if not endless:
                return self.wfile.write(body)
            for _ in range(body.most // len(body.block)):
                self.wfile.write(b"%x\r\n" % len(body.block) + body.block + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


def bomb(first, block, size):
    """`first`, and `size` bytes of the block, as gzip; never in memory, which a child would be counted with."""
    packer, block = zlib.compressobj(1, zlib.DEFLATED, 31), block * ((1 << 20) // len(block))
    return packer.compress(first) + b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


def as_json(value):
    return json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def places(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            yield from places(value[key], (*path, key))


def changed(value):
    value = copy.deepcopy(value)
    path = random.choice([path for path in places(value) if path])
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    if random.random() < 0.75:
        parent[path[-1]] = random.choice(NASTY)
    elif random.random() < 0.5:
        del parent[path[-1]]
    elif isinstance(parent, dict):
        parent[str(random.choice(NASTY))] = parent[path[-1]]
    else:
        parent.extend(parent[:] * 50)
    return value


def size_of(folder):
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except OSError:
                pass
    return total


def run(*words, env=None):
    process = subprocess.Popen([str(word) for word in words], cwd=work, env=env or environment, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    said, most, end = [], 0, time.monotonic() + SECONDS
    reader = threading.Thread(target=lambda: said.append(process.stdout.read()))
    reader.start()
    used = None
    while used is None:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            used = usage
        elif time.monotonic() > end or most > DISK:
            os.killpg(process.pid, signal.SIGKILL)
            _, status, used = os.wait4(process.pid, 0)
            reader.join()
            return "no end" if most <= DISK else "the disk fills", most, used.ru_maxrss, said[0].decode(errors="replace")
        else:
            time.sleep(0.05)
            most = max(most, size_of(work / "cache") + size_of(work / "tmp"))
    reader.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, most, used.ru_maxrss * 1024, said[0].decode(errors="surrogateescape")


def judge(what, job, expected=None, most_memory=MEMORY):
    """Locks the job, and packs it where that was possible."""
    global tries
    tries += 1
    for name in ("cache", "tmp", "out"):
        shutil.rmtree(work / name, ignore_errors=True)
    (work / "tmp").mkdir()
    (work / "demo.lock.toml").unlink(missing_ok=True)
    (work / "job.toml").write_text(f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n' + job)
    code, disk, memory, said = run(BIN / "sealift-pack", "lock", "job.toml")
    wrong = fault_of(code, memory, said, most_memory)
    lock = work / "demo.lock.toml"
    if code == 0 and not wrong:
        text = lock.read_text()
        if BAD.search(text) or "file:///etc" in text:
            wrong = "the lock has what it must not"
        code2, disk, memory, said = run(BIN / "sealift-pack", "create", lock, "--root", "keys/root.1.json", "--key",
                                        "keys/release.key", "-o", "out", "--no-rehearsal")
        wrong = wrong or fault_of(code2, memory, said, most_memory)
        code = code2
    for path in work.rglob("*"):
        if path.is_file() and not path.is_symlink() and path != canary and CANARY in path.read_bytes():
            wrong = wrong or f"{path} has a file of this machine"
    if expected is not None and not wrong and code not in expected:
        wrong = f"ended with {code}, expected {expected}"
    if wrong:
        failures.append(f"{what}: {wrong}")
        print("FAILED:", what, "--", wrong, "\n", said[-700:].encode("unicode_escape").decode(), flush=True)
    elif os.environ.get("SHOW"):
        print(what, code, said[:400].replace("\n", " | "), f"{disk >> 20} MB", flush=True)


def fault_of(code, memory, said, most_memory):
    if code not in CODES:
        return f"ended with {code}"
    if memory > most_memory:
        return f"{memory} bytes of memory"
    if BAD.search(said):
        return f"types {BAD.search(said).group()!r}"
    if "does not expect" in said or "\nerror[io]: forged" in said:
        return "an error that nobody foresaw, or a forged one"
    return ""


PYTHON_PART = f'[python]\nversion = "3.11"\ninterpreter = "{PYTHON}"\nimports = []\nrequirements = ["./base-1.0-py3-none-any.whl"]\n'


WHEEL = "demo-1.0-py3-none-any.whl"


def make_wheel(name="demo", extra=None):
    info = name + "-1.0.dist-info/"
    files = {name + "/__init__.py": b"A = 1\n",
             info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n\n".encode(),
             info + "WHEEL": b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
             **(extra or {})}
    code = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={code(data)},{len(data)}\n" for name, data in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, info + "RECORD": (record + info + "RECORD,,\n").encode()}.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def main(attack, *programs):
    """Runs `attack(server, host)` and ends; skipped (77) where this machine lacks what it needs."""
    global work, environment, canary
    lacking = [name for name in ("patchelf", *programs) if not shutil.which(name)]
    if lacking or not UV.exists() or not os.path.exists(PYTHON):
        print("skipped: needs uv, python3.11 and", *(lacking or ["patchelf"]))
        sys.exit(77)
    work = pathlib.Path(tempfile.mkdtemp(prefix="sealift-sources-"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads, server.routes = True, {}
    try:
        host = f"127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        canary = work / "canary"
        canary.write_bytes(CANARY)
        (work / "home/.config/containers").mkdir(parents=True)
        (work / "home/.config/containers/registries.conf").write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        (work / "base-1.0-py3-none-any.whl").write_bytes(make_wheel("base"))
        (work / "tmp").mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "SEALIFT_CACHE": str(work / "cache"), "SEALIFT_UV": str(UV),
                       "UV_NO_CACHE": "1", "TMPDIR": str(work / "tmp")}
        code, *_, said = run(BIN / "sealift-pack", "keygen", "keys")
        assert code == 0, said
        attack(server, host, work, canary)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{tries} tries, {len(failures)} failed")
    sys.exit(1 if failures else 0)
