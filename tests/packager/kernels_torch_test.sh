#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels beside a real torch: one in the layout of kernel-builder, an operator of torch compiled for this torch (its code
# is for the processor, so no GPU is needed), and one of Python alone. Packed for three releases of the loader, installed,
# and loaded without a network by get_kernel, by load_kernel with a lock file, by get_locked_kernel with a package's and with
# a file, and by a layer (kernelize). What a loader cannot do offline is expected to fail, by name.
# Needs the package index, g++, Python's headers and 10 GB of room; the wheels are kept in CACHE. By labels `network`, `slow`.
#   kernels_torch_test.sh BIN UV CACHE TORCH [VERSION...]      TORCH: the torch folder that the kernel is compiled against
set -euo pipefail
cache=$(realpath -m "$3") torch=$(realpath "$4")
. "$(dirname "$(realpath "$0")")/real_bundle.sh"
shift 4
unshare -rn true 2> /dev/null && command -v g++ > /dev/null && [ -e /usr/include/python3.11/Python.h ] ||
  { echo "skipped: needs namespaces, g++ and Python's headers"; exit 77; }
export UV_SYSTEM_CERTS=1 SEALIFT_CACHE=$cache

release=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch/version.py")
cuda=$(sed -n "s/^cuda: .* = '\([0-9.]*\)'/\1/p" "$torch/version.py")
[ -n "$cuda" ] || { echo "SKIPPED: $torch is a torch without CUDA" >&2; exit 77; }
name=torch$(echo "$release" | cut -d. -f1,2 | tr -d .)-cxx11-cu${cuda//./}-x86_64-linux
variant=compiled/build/$name
mkdir -p "$variant" plain/build/torch-universal plain/build/torch-cpu

cat > tiny.cpp << 'END'
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <ATen/ATen.h>
#include <torch/library.h>
static at::Tensor twice(const at::Tensor& x) { return x * 2; }
TORCH_LIBRARY(_tiny_1, ops) { ops.def("twice(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(_tiny_1, CPU, ops) { ops.impl("twice", &twice); }
PyMODINIT_FUNC PyInit__tiny_1(void) {
  static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tiny_1", nullptr, 0, nullptr};
  return PyModule_Create(&module);
}
END
g++ -std=c++17 -O0 -shared -fPIC -o "$variant/_tiny_1.abi3.so" tiny.cpp -I/usr/include/python3.11 -isystem "$torch/include" \
  -isystem "$torch/include/torch/csrc/api/include" -L"$torch/lib" -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10 -lc10_cuda
echo 'import torch
from . import _tiny_1
ops = torch.ops._tiny_1' > "$variant/_ops.py"
cat > layers.py << 'END'
import torch
class Twice(torch.nn.Module):
    def forward(self, x):
        return twice(x)
END
{ echo 'from ._ops import ops'; echo 'def twice(x): return ops.twice(x)'; echo 'from . import layers'; } > "$variant/__init__.py"
sed 's/^import torch$/import torch\nfrom ._ops import ops\ntwice = ops.twice/' layers.py > "$variant/layers.py"
echo '{"id": "_tiny_1", "name": "tiny", "version": 1, "license": "MIT", "python-depends": [],
  "backend": {"type": "cuda", "archs": ["9.0"]}}' > "$variant/metadata.json"

for folder in torch-universal torch-cpu; do
  echo "def where(): return '$folder'" > plain/build/$folder/__init__.py
  kind=cpu; [ $folder = torch-cpu ] || kind=cuda
  echo '{"id": "_plain_1", "name": "plain", "version": 1, "license": "MIT", "python-depends": [], "backend": {"type": "'$kind'"}}' \
    > plain/build/$folder/metadata.json
done

mkfifo address
python3 "$here/../support/folder_hub.py" compiled org/tiny v1 > address & first=$!
read -r tiny_hub < address
python3 "$here/../support/folder_hub.py" plain org/plain v1 > address & server="$first $!"
read -r plain_hub < address
trap 'kill $server 2> /dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT

# A package whose own metadata has a lock of kernels, as `kernels lock` writes it: of two formats.
mkdir -p mine mine-1.dist-info
cat > mine/__init__.py << 'END'
import kernels
def locked(**more):
    return kernels.get_locked_kernel("org/tiny", **more)
END
printf 'Metadata-Version: 2.1\nName: mine\nVersion: 1\n' > mine-1.dist-info/METADATA
printf 'mine/__init__.py,,\nmine-1.dist-info/METADATA,,\n' > mine-1.dist-info/RECORD
commit=$(printf org/tiny | sha1sum | cut -d' ' -f1)
lock_file() {  # RELEASE OF kernels
  if [ "$(printf '%s\n0.17\n' "$1" | sort -V | head -1)" = 0.17 ]; then
    echo '[{"dependency": {"repo-id": "org/tiny", "version": 1}, "lock": {"commit": "'"$commit"'"}}]'
  else
    echo '[{"repo_id": "org/tiny", "sha": "'"$commit"'", "variants": {"'"$name"'": {"hash": "sha256-x", "hash_type": "git_lfs_concat"}}}]'
  fi
}

cat > load.py << 'END'
import pathlib, sys, torch, kernels
import mine
old, newest = kernels.__version__ < "0.15", kernels.__version__ >= "0.17"
def same(module):
    assert module.twice(torch.tensor([1.5])).tolist() == [3.0]
def layer():
    mapping = {"Twice": {"cpu": kernels.LayerRepository("org/tiny", layer_name="Twice", version=1)}}
    @kernels.use_kernel_forward_from_hub("Twice")
    class Twice(torch.nn.Module):
        def forward(self, x):
            raise AssertionError("the kernel is not used")
    with kernels.use_kernel_mapping(mapping):
        model = kernels.kernelize(torch.nn.Sequential(Twice()), mode=kernels.Mode.INFERENCE, device="cpu")
    assert model(torch.tensor([1.5])).tolist() == [3.0]
lock = pathlib.Path("kernels.lock")
ways = {"get_kernel by version": (lambda: same(kernels.get_kernel("org/tiny", version=1)), True),
        "get_kernel by revision": (lambda: same(kernels.get_kernel("org/tiny", revision="v1")), True),
        "load_kernel": (lambda: same(kernels.load_kernel("org/tiny", lockfile=lock)), not old),
        # 0.17 takes its own module for the caller's, so a package's lock is not found there; a file is.
        "get_locked_kernel of a package": (lambda: same(mine.locked(**({"lockfile": None} if newest else {}))),
                                           not old and not newest),
        "get_locked_kernel of a file": (lambda: same(mine.locked(lockfile=lock)), newest),
        "a layer": (layer, not old),
        "Python alone": (lambda: print("  of Python alone:", kernels.get_kernel("org/plain", version=1).where()), True)}
wrong = 0
for way, (load, expected) in ways.items():
    try:
        load()
        works, said = True, ""
    except Exception as error:
        works, said = False, f": {type(error).__name__}: {str(error)[:150]}"
    print(f"  {kernels.__version__} {way}: {'works' if works else 'fails'}{said}")
    wrong += works != expected
sys.exit(f"{wrong} ways are not as expected" if wrong else 0)
END

for loader in "${@:-0.13.0 0.15.2 0.17.2}"; do
  for version in $loader; do
    rm -rf out site keys
    start_job tiny "\"kernels==$version\", \"torch==$release\"" '"kernels", "torch"' > job.toml
    printf '[[kernel]]\nrepo = "org/tiny"\nrevision = "v1"\nendpoint = "%s"\n' "$tiny_hub" >> job.toml
    printf '[[kernel]]\nrepo = "org/plain"\nrevision = "v1"\nendpoint = "%s"\n' "$plain_hub" >> job.toml
    pack tiny --no-rehearsal > said 2>&1 || { cat said; exit 1; }
    grep -q "locked the kernel org/tiny at v1: $name" said || { cat said; exit 1; }
    install_bundle tiny "$work/site" > said 2>&1 || { cat said; exit 1; }
    rm -rf out
    lock_file "$version" > kernels.lock
    cp kernels.lock mine-1.dist-info/kernels.lock
    echo "kernels $version"
    HOME=$work/home unshare -rn site/current/bin/python3 -W ignore load.py
    chmod -R u+w site
  done
done
