#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# samples/repository/nginx.conf as it stands, but for its ports, in front of a running sealift-repo: pip and curl over
# https. program_test.cpp starts the server. Exit status 77 where nginx, openssl or curl is missing.
#   nginx_test.py PORT-OF-THE-SERVER PACKAGE
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONFIGURATION = pathlib.Path(__file__).resolve().parents[2] / "samples/repository/nginx.conf"
upstream, package = sys.argv[1:3]
for program in ("nginx", "openssl", "curl"):
    if not shutil.which(program):
        print(f"left out: no {program}")
        sys.exit(77)


# Certificates and proxies of the account that runs the tests do not concern this test: pip prefers them to --cert.
environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, check=False, env=environment)


def good(what, condition, ran=None):
    if not condition:
        sys.exit(f"{what}: {ran.stdout + ran.stderr if ran else ''}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


with tempfile.TemporaryDirectory() as folder:
    root, port = pathlib.Path(folder), free_port()
    made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
               "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
               "-keyout", root / "key.pem", "-out", root / "certificate.pem")
    good("a certificate", made.returncode == 0, made)
    text = CONFIGURATION.read_text().replace("127.0.0.1:8080", "127.0.0.1:" + upstream).replace("8443", port)
    (root / "nginx.conf").write_text(text)
    (root / "logs").mkdir()
    checked = run("nginx", "-p", root, "-c", "nginx.conf", "-e", "error.log", "-t")
    good("nginx takes the configuration", checked.returncode == 0, checked)
    server = subprocess.Popen(["nginx", "-p", root, "-c", "nginx.conf", "-e", "error.log", "-g", "daemon off;"])
    try:
        index, certificate = f"https://127.0.0.1:{port}/simple/", str(root / "certificate.pem")
        for _ in range(200):
            page = run("curl", "-s", "--http2", "--cacert", certificate, "-o", "/dev/null", "-w",
                       "%{http_version} %{http_code}", index)
            if page.returncode == 0:
                break
            time.sleep(0.05)
        good("HTTP/2", page.stdout == "2 200", page)
        hidden = run("curl", "-s", "--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}",
                     f"https://127.0.0.1:{port}/metrics")
        good("/metrics stays inside", hidden.stdout == "404", hidden)
        pip = run("/usr/bin/python3", "-m", "pip", "--isolated", "--disable-pip-version-check", "install",
                  "--no-cache-dir", "--cert", certificate, "--index-url", index, "--target", root / "site", package)
        good("pip over https", pip.returncode == 0, pip)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
print("good")
