#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# `sealift-repo` against nginx with the same bytes as plain files: the wheel of torch 2.11, ranges of it, 2,000 clients.
#   compare_repo.py TOOLS PATTERN    TOOLS: the folder with our programs
#   compare_repo.py --names          lists the comparisons
# nginx is Debian's package and is not installed here. Ours serves what it checked; nginx checks nothing. Both run from
# the first line to the last, in turn under the same client, and each is asked once before anything is timed.
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

from closure import HOME, begun, create, locked, race, run, say

# name -> connections, requests of each, bytes of a range (0: the whole), and of what
NAMES = {
    "repo_wheel_vs_nginx": (4, 3, 0, "wheel"),
    "repo_range_vs_nginx": (16, 4000, 10, "wheel"),
    "repo_metadata_vs_nginx": (64, 500, 0, "metadata"),
    "repo_index_vs_nginx": (64, 500, 0, "index"),
    "repo_2000_clients": (2000, 4, 0, "index"),
}
NGINX_CONF = """daemon off; worker_processes auto; worker_rlimit_nofile 20000; pid {home}/pid; error_log stderr;
events {{ worker_connections 10000; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; types {{ }} default_type application/octet-stream;
  client_body_temp_path {home}/t1; proxy_temp_path {home}/t2; fastcgi_temp_path {home}/t3; uwsgi_temp_path {home}/t4;
  scgi_temp_path {home}/t5;
  server {{ listen 127.0.0.1:{port} backlog=4096; root {home}/root; open_file_cache max=1000; }}
}}
"""


def bundle_of(tools):
    """The folder of the torch closure's bundle; packs it when it is not there."""
    folder = HOME / "bundles/torch-sha256-1"
    if not folder.exists():
        run(create(tools, locked(tools, "sha256"), HOME / "bundles", "--volume-size", "1G"), stdout=sys.stderr)
    return folder


@contextlib.contextmanager
def ended(process):
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def ours(tools):
    fingerprint = (HOME / "keys/root.fingerprint").read_text().strip()
    process = subprocess.Popen([tools / "sealift-repo", "serve", bundle_of(tools), "--fingerprint", fingerprint, "--listen",
                                "127.0.0.1:0", "--quiet"], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline().rsplit(":", 1)[1])


def nginx(home):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "nginx.conf").write_text(NGINX_CONF.format(home=home, port=port))
    return subprocess.Popen(["nginx", "-p", home, "-c", home / "nginx.conf"]), port


def asked(port, target):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}{target}")


def targets_of(port):
    """What is asked for: target -> of ours; the peer gets the same bytes under the same path."""
    index = "/simple/torch/?format=application/vnd.pypi.simple.v1%2Bjson"
    with asked(port, index) as page:
        wheel = json.load(page)["files"][0]["url"].removeprefix("../..")
    return {"wheel": wheel, "metadata": wheel + ".metadata", "index": index}


def carry_over(port, targets, root):
    """Puts what ours answers into files below `root`; returns their sizes."""
    sizes = {}
    for what, target in targets.items():
        path = target.split("?")[0]
        path = root / (path[1:] + "page" if path.endswith("/") else path[1:].replace("%2B", "+"))
        path.parent.mkdir(parents=True, exist_ok=True)
        with asked(port, target) as answer, open(path, "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
        sizes[what] = path.stat().st_size
    return sizes


def main():
    tools, pattern = begun(NAMES)
    os.environ["PATH"] += ":/usr/sbin"
    if shutil.which("nginx") is None:
        sys.exit("nginx is missing, so there is nothing to compare with: it is Debian's package nginx")
    bundle_of(tools)
    with tempfile.TemporaryDirectory(dir=HOME) as folder, contextlib.ExitStack() as stack:
        home = pathlib.Path(folder)
        os.chmod(home, 0o755)  # nginx's workers are another user
        process, port = ours(tools)
        stack.enter_context(ended(process))
        targets = targets_of(port)
        sizes = carry_over(port, targets, home / "root")
        peer, peer_port = nginx(home)
        stack.enter_context(ended(peer))
        for name, (connections, requests, length, what) in NAMES.items():
            if not re.search(pattern, name):
                continue
            size = sizes[what]
            part = [str(length), str(size)] if length else []
            places = {"ours": (port, targets[what]), "peer": (peer_port, targets[what].replace("/?", "/page?"))}
            loads = {side: [tools / "sealift-bench-http", str(at), target, str(connections), str(requests), *part]
                     for side, (at, target) in places.items()}
            for side, command in loads.items():
                ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                say(f"{name}: {side}, once before: {ran.stdout.strip()}")
            race(name, f"{connections} connections, {requests} requests each, {length or size} bytes an answer",
                 {side: [command] for side, command in loads.items()})


main()
