#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# [toolchain] c = true in earnest: the index's ziglang, packed and installed, compiles an extension module in a bare system
# that has no compiler and no network, by what CC says; Python imports it. Then what Triton asks of it, with its words.
# Needs root, a Debian mirror and the package index, 100 MB of downloads and 2 GB of room; by label `network`.
#   toolchain_test.sh BIN UV
set -euo pipefail
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
require_bare_system
[ -e /usr/include/python3.11/Python.h ] || { echo "skipped: needs Python's headers"; exit 77; }

start_job toolchain '"pip"' '"pip"' > job.toml
printf '[toolchain]\nc = true\n' >> job.toml
pack toolchain --no-rehearsal
grep -q '^name = "ziglang"' toolchain.lock.toml
bare_system
install_bundle toolchain "$work/root/opt/env"
rm -rf out cache

# Like Triton's launcher: Python.h, a library that is loaded by the driver's name, and a call into it.
cat > root/var/tmp/launcher.c << 'END'
#include <Python.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
int cuInit(unsigned flags);
static PyObject* launch(PyObject* self, PyObject* args) {
  double x;
  if (!PyArg_ParseTuple(args, "d", &x)) return NULL;
  return Py_BuildValue("di", sqrt(x), cuInit(0));
}
static PyMethodDef methods[] = {{"launch", launch, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "launcher", NULL, -1, methods};
PyMODINIT_FUNC PyInit_launcher(void) { return PyModule_Create(&module); }
END
printf 'int cuInit(unsigned flags) { return 42 + flags; }\n' > root/var/tmp/driver.c
cat > root/var/tmp/build.py << 'END'
# triton 3.6.0, runtime/build.py: CC is one path, and these are its arguments.
import os, shutil, subprocess, sys, sysconfig
sys.path.insert(0, "/var/tmp")
assert not any(map(shutil.which, ("cc", "gcc", "clang"))), "a compiler of the host's is in reach"
cc, include = os.environ["CC"], sysconfig.get_paths()["include"]
assert cc == os.path.realpath(sys.prefix) + "/libexec/sealift/cc", cc
os.makedirs("/var/tmp/lib", exist_ok=True)
run = lambda *words: subprocess.check_call([cc, *words])
run("/var/tmp/driver.c", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "/var/tmp/lib/libcuda.so.1")
run("/var/tmp/launcher.c", "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", "/var/tmp/launcher.so", "-l:libcuda.so.1",
    "-L/var/tmp/lib", "-I" + include, "-I/var/tmp")
import ctypes
ctypes.CDLL("/var/tmp/lib/libcuda.so.1", ctypes.RTLD_GLOBAL)
import launcher
assert launcher.launch(9.0) == (3.0, 42)
print("compiled and imported", launcher.__file__, "by", cc)
END
host=$work/root
. "$here/../../samples/bare_host.sh"
inside /opt/env/current/bin/python /var/tmp/build.py
inside /bin/sh -c 'test -d /var/tmp/.cache/zig && ! command -v cc'
# A program, too, and for the glibc of the target alone: nothing newer is asked for.
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' > root/var/tmp/hello.c
# By its path: `activate` knows the place where the environment was installed, which has another name in here.
inside /bin/sh -c '/opt/env/current/libexec/sealift/cc /var/tmp/hello.c -o /var/tmp/hello && /var/tmp/hello' | grep -qx hello
readelf -V root/var/tmp/hello | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1 | {
  read -r newest
  [ "$(printf 'GLIBC_2.36\n%s\n' "$newest" | sort -V | tail -1)" = GLIBC_2.36 ] || { echo "FAILED: it needs $newest" >&2; exit 1; }
}
