#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A folder as a hub on the loopback: one repository at one commit, as a model and as a kernel, large files with their
# SHA-256. For tests that have the real client on the other side. Prints its address, then serves until it is ended.
#   folder_hub.py FOLDER ORG/NAME [REVISION]
import hashlib
import http.server
import json
import pathlib
import sys
import urllib.parse

FOLDER, REPO, REVISION = pathlib.Path(sys.argv[1]), sys.argv[2], (sys.argv[3:] or ["main"])[0]
COMMIT = hashlib.sha1(REPO.encode()).hexdigest()


def item(path):
    data = path.read_bytes()
    entry = {"type": "file", "path": str(path.relative_to(FOLDER)), "size": len(data),
             "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
    if len(data) > 1_000_000:
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return entry


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = urllib.parse.unquote(self.path.split("?")[0])
        kind = "kernels" if path.startswith(("/kernels/", "/api/kernels/")) else "models"
        files = f"{'/kernels' if kind == 'kernels' else ''}/{REPO}/resolve/{COMMIT}/"
        if path == f"/api/{kind}/{REPO}/revision/{REVISION}":
            self.answer(json.dumps({"id": REPO, "sha": COMMIT}).encode())
        elif path == f"/api/{kind}/{REPO}/tree/{COMMIT}":
            self.answer(json.dumps([item(file) for file in sorted(FOLDER.rglob("*")) if file.is_file()]).encode())
        elif path.startswith(files) and (FOLDER / path[len(files):]).is_file():
            self.answer((FOLDER / path[len(files):]).read_bytes())
        else:
            self.send_error(404)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
