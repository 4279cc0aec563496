#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Two wheels for aarch64 and an index of them: armdemo has a native library of its own, which needs one that is brought as
# NVIDIA's are (nvidia/*/lib, found by sealift-start).
#   make_wheels.py FOLDER CC        -> FOLDER/simple/NAME/*.whl
import base64
import hashlib
import pathlib
import subprocess
import sys
import zipfile

folder, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
PLATFORM = "manylinux_2_17_aarch64"
INIT = """import ctypes, os
_library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libanswer.so"))
def answer():
    return _library.answer()
"""


def library(name, source, *options):
    path = folder / name
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", f"-Wl,-soname,{name}", "-x", "c", "-", "-x", "none", "-o", path, *options],
                   input=source.encode(), check=True)
    return path.read_bytes()


def wheel(name, tag, files):
    info = f"{name}-1.0.dist-info/"
    files = {**files, info + "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
             info + "WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()}
    record = ""
    path = folder / "simple" / name.replace("_", "-")
    path.mkdir(parents=True)
    with zipfile.ZipFile(path / f"{name}-1.0-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{member},sha256={digest},{len(data)}\n"
            archive.writestr(zipfile.ZipInfo(member), data)
        archive.writestr(zipfile.ZipInfo(info + "RECORD"), record + info + "RECORD,,\n")
    list_wheels(path)


def list_wheels(path):
    """The page of one project, as PEP 503 has it."""
    links = (f'<a href="{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">{file.name}</a>'
             for file in sorted(path.glob("*.whl")))
    (path / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))


core = library("libarmcore.so.1", "int core(void) { return 40; }")
answer = library("libanswer.so", "int core(void); int answer(void) { return core() + 2; }", folder / "libarmcore.so.1",
                 "-Wl,-rpath,$ORIGIN/../nvidia/armcore/lib")
wheel("armdemo", f"cp311-cp311-{PLATFORM}", {"armdemo/__init__.py": INIT.encode(), "armdemo/libanswer.so": answer,
                                             "armdemo/many.bin": bytes(range(256)) * 4096})
wheel("nvidia_armcore", f"py3-none-{PLATFORM}", {"nvidia/armcore/lib/libarmcore.so.1": core})
# What must not be taken: the same for the packing machine.
other = folder / "simple/armdemo/armdemo-1.0-cp311-cp311-manylinux_2_17_x86_64.whl"
other.write_bytes(b"never opened")
list_wheels(other.parent)
