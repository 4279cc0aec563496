#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A site's own package server pulls from sealift-repo, and pip installs from that server: devpi with the repository as
# the upstream of a mirror. Needs a network once, for devpi itself. lists_test.cpp starts it (slow).
#   mirrors_test.py SIMPLE-INDEX-URL PACKAGE FOLDER
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

index, package, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{words}\n{done.stdout}{done.stderr}")
    return done.stdout


run(sys.executable, "-m", "venv", folder / "devpi")
tools = folder / "devpi/bin"
run(tools / "pip", "install", "-q", "devpi-server", "devpi-client")
run(tools / "devpi-init", "--serverdir", folder / "state", "--no-root-pypi")
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
url = f"http://127.0.0.1:{port}"
log = open(folder / "devpi.log", "w", encoding="utf-8")
server = subprocess.Popen([tools / "devpi-server", "--serverdir", folder / "state", "--port", str(port)],
                          stdout=log, stderr=log)
try:
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit((folder / "devpi.log").read_text())
            time.sleep(0.1)
    client = {"cwd": folder, "env": {"HOME": str(folder), "PATH": "/usr/bin:/bin"}}
    run(tools / "devpi", "use", url, **client)
    run(tools / "devpi", "login", "root", "--password=", **client)
    run(tools / "devpi", "index", "-c", "site", "type=mirror", f"mirror_url={index}", **client)
    run(sys.executable, "-m", "pip", "--isolated", "install", "-q", "--no-cache-dir", "--target", folder / "site",
        "--index-url", f"{url}/root/site/+simple/", package)
    page = urllib.request.urlopen(f"{url}/root/site/+simple/{package}/").read().decode()
    if not re.search(r"#sha256=[0-9a-f]{64}", page):
        sys.exit("devpi's page has no digest of the wheel")
    if not list((folder / "site").glob(f"{package}-*.dist-info")):
        sys.exit("nothing was installed")
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
print("good")
