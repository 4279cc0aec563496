#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `lock` and `create` behind a proxy, with certificates of the site's own authority: an index whose name nobody can
# resolve, which only the proxy reaches, over TLS that only a made authority vouches for. All of it on the loopback.
# Needs uv, patchelf and openssl; without them it is skipped (77). The case of a store that knows the authority needs a
# mount namespace, and is left out where there is none.
#   proxy_and_ca_test.py BIN UV
import hashlib
import http.server
import os
import pathlib
import select
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tiny_index import write_wheel

BIN, UV = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LEFT_OUT = os.environ.pop("SEALIFT_LEFT_OUT", "")  # see tests/support/left_out.hpp
if LEFT_OUT:
    pathlib.Path(LEFT_OUT).unlink(missing_ok=True)
PYTHON, HOST, WHEEL = "/usr/bin/python3.11", "index.test", "demo-1.0-py3-none-any.whl"
if not (UV.exists() and os.path.exists(PYTHON) and shutil.which("patchelf") and shutil.which("openssl")):
    print("skipped: needs uv, python3.11, patchelf and openssl")
    sys.exit(77)


def make_certificates(folder):
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=the site", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text(f"subjectAltName=DNS:{HOST},IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")


def with_system_store(folder):
    """The words before a command that make it see a system store which knows nothing but our authority; None without."""
    store = folder / "store"
    store.mkdir()
    shutil.copy(folder / "ca.pem", store / "ca-certificates.crt")
    script = f'mount --bind "{store}" /etc/ssl/certs && exec "$@"'
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "sh", "-c", script, "sh"]
    try:
        return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else None
    except FileNotFoundError:
        return None


class Index(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_GET(self):
        wheel = self.server.wheel.read_bytes()
        if self.path.rstrip("/") == "/simple/demo":
            link = f'<a href="/files/{WHEEL}#sha256={hashlib.sha256(wheel).hexdigest()}">{WHEEL}</a>'
            self.answer(f"<!DOCTYPE html><html><body>{link}</body></html>".encode(), "text/html")
        elif self.path == f"/files/{WHEEL}":
            self.answer(wheel, "application/octet-stream")
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Proxy(socketserver.BaseRequestHandler):
    """CONNECT to the one host it knows."""

    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = self.request.recv(4096)
            if not piece:
                return
            head += piece
        if not head.startswith(f"CONNECT {HOST}:443 ".encode()):
            self.request.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        self.server.tunnels += 1
        with socket.create_connection(self.server.target) as far:
            self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            ends = {self.request: far, far: self.request}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    piece = end.recv(65536)
                    if not piece:
                        return
                    ends[end].sendall(piece)


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = daemon_threads = True


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main(work):
    make_certificates(work)
    write_wheel(work)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(work / "server.pem", work / "server.key")
    index = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    index.wheel = work / WHEEL
    index.socket = context.wrap_socket(index.socket, server_side=True)
    port = serve(index)
    proxy = Threads(("127.0.0.1", 0), Proxy)
    proxy.target, proxy.tunnels = ("127.0.0.1", port), 0
    address = f"http://127.0.0.1:{serve(proxy)}"
    wheel_sha256 = hashlib.sha256((work / WHEEL).read_bytes()).hexdigest()

    def run(verb, *words, inside=(), **environment):
        clean = {"PATH": os.environ["PATH"], "HOME": str(work), "SEALIFT_CACHE": str(work / "cache"), "SEALIFT_UV": str(UV),
                 "UV_NO_CACHE": "1", **environment}
        return subprocess.run([*inside, str(BIN / "sealift-pack"), verb, *map(str, words)], env=clean, cwd=work, text=True, capture_output=True)

    def job(host):
        (work / "job.toml").write_text(
            f'name = "demo"\nversion = 1\n[target]\narch = "x86_64"\nglibc = "2.36"\n[python]\nversion = "3.11"\n'
            f'interpreter = "{PYTHON}"\nrequirements = ["demo"]\nimports = ["demo"]\ndefault_index = "https://{host}/simple"\n')

    def check(that, result):
        if not that:
            sys.exit(f"failed: {result.args}\n{result.stdout}\n{result.stderr}")

    def forget():
        (work / "cache/sha256" / wheel_sha256).unlink(missing_ok=True)
        proxy.tunnels = 0

    def create(out, **options):
        return run("create", "demo.lock.toml", "--root", "keys/root.1.json", "--key", "keys/release.key", "-o", out, "--no-rehearsal",
                   **options)

    result = run("keygen", "keys")
    check(result.returncode == 0, result)
    job(HOST)
    trusted = str(work / "ca.pem")
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        forget()
        result = run("lock", "job.toml", https_proxy=address, **{name: trusted})
        check(result.returncode == 0 and proxy.tunnels > 0, result)
        forget()
        result = create(name, https_proxy=address, **{name: trusted})
        check(result.returncode == 0 and proxy.tunnels == 1, result)
        print(f"{name}: lock and create went through the proxy")
    forget()
    for result in (run("lock", "job.toml", https_proxy=address), create("untrusted", https_proxy=address)):
        check(result.returncode == 12 and "certificate" in result.stderr.lower(), result)
    print("without the authority's certificate both refuse")
    inside = with_system_store(work)
    if inside:
        forget()
        result = run("lock", "job.toml", inside=inside, https_proxy=address)
        check(result.returncode == 0 and proxy.tunnels > 0, result)
        forget()
        result = create("system_store", inside=inside, https_proxy=address)
        check(result.returncode == 0 and proxy.tunnels == 1, result)
        print("the system's store alone: lock and create went through the proxy, without a variable")
    else:
        why = "the system's store alone, which needs a mount namespace"
        print("left out:", why)
        if LEFT_OUT:
            pathlib.Path(LEFT_OUT).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(LEFT_OUT).write_text(why + "\n")
    job(f"127.0.0.1:{port}")
    forget()
    result = run("lock", "job.toml", https_proxy=address, no_proxy="127.0.0.1", SSL_CERT_FILE=trusted)
    check(result.returncode == 0, result)
    result = create("direct", https_proxy=address, no_proxy="127.0.0.1", SSL_CERT_FILE=trusted)
    check(result.returncode == 0 and proxy.tunnels == 0, result)
    print("no_proxy: lock and create went around the proxy")


with tempfile.TemporaryDirectory() as folder:
    main(pathlib.Path(folder))
