#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The lines of the front page, pasted as they stand by a client that reaches the repository over plain HTTP at an
# address outside of the loopback, which no client trusts by itself. skopeo_test.cpp starts it in a network of its own.
# A line whose program is not here is named; pip's, uv's and skopeo's have to be there. The command that failed is
# shown.
#   unshare --net paste_test.py SEALIFT-REPO UV BUNDLE FINGERPRINT
import html
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

ADDRESS = "10.77.0.1"
repo, uv, bundle, fingerprint = sys.argv[1:5]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)

with tempfile.TemporaryDirectory() as folder:
    here = pathlib.Path(folder)
    (here / "bin").mkdir()
    (here / "bin/pip").write_text('#!/bin/sh\nexec /usr/bin/python3 -m pip "$@"\n')
    (here / "bin/pip").chmod(0o755)
    # Nothing of the account that runs the tests: no configuration, proxy or certificates.
    environment = {"PATH": f"{here}/bin:{pathlib.Path(uv).parent}:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C.UTF-8",
                   "PIP_CONFIG_FILE": os.devnull, "PIP_TARGET": f"{here}/site", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                   "UV_NO_CONFIG": "1", "UV_CACHE_DIR": f"{here}/cache", "VIRTUAL_ENV": f"{here}/env"}
    subprocess.run([uv, "venv", "-q", "--python", "/usr/bin/python3", here / "env"], check=True, env=environment)
    server = subprocess.Popen([repo, "serve", bundle, "--fingerprint", fingerprint, "--listen", f"{ADDRESS}:0", "--quiet"],
                              stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", server.stdout.readline()).group().rstrip("/")
        with urllib.request.urlopen(url + "/") as answer:
            page = answer.read().decode()
        lines = {title: html.unescape(text) for title, text in re.findall(r"<h3>(.*?)</h3>\s*<pre[^>]*>(.*?)</pre>", page, re.S)}
        ran = set()
        for title, line in lines.items():
            program = [word for word in line.splitlines()[-1].split() if "=" not in word][0]
            if not shutil.which(program, path=environment["PATH"]):
                print(f"left out: {title}: {program} is not here")
                continue
            done = subprocess.run(["sh", "-c", line], cwd=here, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{title}: {line}\n{done.stdout}{done.stderr}")
            ran.add(program)
            print(f"{title}: {line}")
        if not {"pip", "uv", "skopeo"} <= ran:
            sys.exit(f"only {sorted(ran)} of the lines {list(lines)}")
        for place in (here / "site", here / "env/lib"):
            if not list(place.rglob("demo-*.dist-info")):
                sys.exit(f"nothing was installed in {place}")
        if not (here / "images/index.json").is_file():
            sys.exit("skopeo copied nothing")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
print("good")
