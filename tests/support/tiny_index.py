# SPDX-License-Identifier: Apache-2.0
# What tests with an index on the loopback share: a wheel of one module, answers of a handler, and what processes were told.
import base64
import hashlib
import http.server
import io
import pathlib
import zipfile


def wheel_of(name="demo", version="1.0"):
    """The bytes of a pure wheel of one module, always the same."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info/"
    files = {f"{module}/__init__.py": "ANSWER = 42\n", info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in {**files, info + "RECORD": record + info + "RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return out.getvalue()


def write_wheel(folder, name="demo", version="1.0"):
    """Writes that wheel into `folder`, which is made; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    wheel.write_bytes(wheel_of(name, version))
    return wheel


class Answers(http.server.BaseHTTPRequestHandler):
    """A handler of requests with one way to answer them; connections stay open."""
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", **headers):
        """`headers`: with _ for -."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


def arguments_of_all():
    """The command line of each process of this machine, with blanks between words."""
    for process in pathlib.Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                yield (process / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                pass
