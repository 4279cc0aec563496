#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The installed trainer in a prefix: it finds that prefix's LibTorch, and nothing in it names the machine that built it.
# usage: installed_test.sh BUILD_DIR SOURCE_DIR TORCH_DIR PYTHON_VERSION
set -eu
build=$1 source=$2 torch=$3 python=$4
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
cmake --install "$build" --component trainer --prefix "$prefix" >/dev/null
program=$prefix/bin/sealift-train half=$prefix/lib/libsealift_train_cuda.so
readelf -d "$program" | grep -q '(RPATH)' || fail "no DT_RPATH"
! readelf -d "$program" | grep -q '(RUNPATH)' || fail "DT_RUNPATH, which LD_LIBRARY_PATH would override"
readelf -d "$program" | grep -qF "\$ORIGIN/../lib/python$python/site-packages/torch/lib:" || fail "torch/lib is not in the path"
for folder in "$build" "$source" "$torch"; do
  for file in "$program" "$half"; do
    [ ! -e "$file" ] || ! strings -a "$file" | grep -F "$folder" || fail "$file names $folder"
  done
done
# Neither CUDA nor a library of the building machine: LibTorch's two and what every host has.
others=$(readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
  grep -vE '^(libtorch_cpu|libc10|libstdc\+\+|libgcc_s|libm|libc|ld-linux-x86-64|libpthread|libgomp)\.so' || true)
[ -z "$others" ] || fail "the program needs $others"

# Before the prefix has a LibTorch there is none to find; with it the program runs.
! "$program" --version 2>/dev/null || fail "a LibTorch outside the prefix was found"
mkdir -p "$prefix/lib/python$python"
ln -s "$(dirname "$torch")" "$prefix/lib/python$python/site-packages"
"$program" --version
"$program" run --device cpu --steps 1 --layers 1 --width 16 --out "$prefix/out"
# It names the bundle that it was installed from, where the installer left its record; else it says that there is none.
grep -q '"bundle": "none"' "$prefix/out/result.json" || fail "a program of no bundle names one"
identity=$(printf '%064d' 7)
printf '{"generation":4,"identity":"%s","name":"env","version":12}\n' "$identity" >"$prefix/generation.json"
"$program" run --device cpu --steps 1 --layers 1 --width 16 --out "$prefix/named" --checkpoint-folder "$prefix/saved"
for key in '"name": "env"' '"version": 12' '"generation": 4' "\"identity\": \"$identity\""; do
  grep -qF "$key" "$prefix/named/result.json" || fail "result.json lacks $key"
done
grep -qF "$identity" "$prefix"/saved/step-*/index.json || fail "the checkpoint does not name its bundle"
# Its CUDA half finds the prefix's libraries too, with or without a driver.
if [ -e "$half" ]; then
  readelf -d "$half" | grep -qF "(RPATH)" || fail "the CUDA half has no DT_RPATH"
  missing=$(ldd "$half" | grep 'not found' || true)
  [ -z "$missing" ] || fail "the CUDA half does not find $missing"
fi
