#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The closures that people really train with: each is locked, packed, installed on a bare Debian without a network, and
# there every module of every wheel is imported.
#   tests/end_to_end/closures_test.sh [OUT [BIN [CLOSURE…]]]     OUT build/closures, BIN build/tools/bin, trainers swift
# Others are run by name: lightning llamafactory vllm sglang swift_all; published mlflow clouds airflow transformer_engine,
# which are wheels that others publish oddly; flash_attn, whose build takes an hour or more. What was seen: closures/README.md
#   ctest --test-dir build/release -C slow -R closures           not without -C slow: see below
# Needs a network, root, some 15 GB in OUT and 6 GB of downloads (SEALIFT_CACHE, build/prerequisites/downloads); ten
# minutes once they are there. What was installed is deleted again, logs and locks stay.
set -euo pipefail
project=$(realpath "$(dirname "$0")/../..")
here=$project/tests/end_to_end/closures
out=$(realpath -m "${1:-$project/build/closures}")
bin=$(realpath -m "${2:-$project/build/tools/bin}")
closures=("${@:3}")
[ "${#closures[@]}" -gt 0 ] || closures=(trainers swift)
prerequisites=$project/build/prerequisites
cache=${SEALIFT_CACHE:-$prerequisites/downloads}
[ "$(id -u)" -eq 0 ] || { echo "needs root for chroot: not run"; exit 77; }
# Debian's own Python first, for the host is Debian; uv from where prerequisites.sh puts it.
export PATH=/usr/bin:$prerequisites/uv/bin:$PATH

mkdir -p "$out/logs"
host=$out/host
source "$project/samples/bare_host.sh"  # with /proc, which deepspeed asks about its own process
end() { if [ "$mounts" = bind ]; then while umount -l "$host" 2>/dev/null; do :; done; fi; rm -rf "$host" "$out/bundle"; }
trap end EXIT
[ -f "$out/keys/root.1.json" ] || { rm -rf "$out/keys"; "$bin/sealift-pack" keygen "$out/keys" > "$out/logs/keygen.log" 2>&1; }
fingerprint=$(cat "$out/keys/root.fingerprint")

bare() { inside "$@"; }
fail() { echo "FAILED: $*"; exit 1; }

bare_host() {
  if [ ! -f "$prerequisites/bare-host.tar" ]; then
    mmdebstrap --quiet --format=tar --variant=minbase bookworm "$prerequisites/bare-host.tar.partial"
    mv "$prerequisites/bare-host.tar.partial" "$prerequisites/bare-host.tar"
  fi
  rm -rf "$host" && mkdir -p "$host/disc" "$host/dev/shm"
  tar -C "$host" --exclude='./dev/*' -xf "$prerequisites/bare-host.tar"
  ! bare /bin/sh -c 'command -v python3 gcc openssl curl' || fail "the host is not bare"
}

# What can be asked of each closure beyond its imports.
try_trainers() {
  bare "$prefix/bin/accelerate" launch --help | grep -q -- --num_processes
  bare "$prefix/bin/trl" sft --help | grep -q -- --model_name_or_path
}
try_swift() {
  # 4.6 takes no option before its first word, here or anywhere: it must get as far as to say so.
  bare "$prefix/bin/swift" --help > "$log.swift.log" 2>&1 || grep -qx "KeyError: '--help'" "$log.swift.log"
  bare "$prefix/bin/swift" sft --help | grep -q '^usage: sft.py'
  bare "$prefix/bin/swift" infer --help | grep -q -- --val_dataset_sample
  [ "$(grep -c '^\[wheel.built_from\]' "$lock")" = 3 ] || fail "other sdists than crcmod, oss2 and transformers-stream-generator"
}

# DeepSpeed's releases are sources; a wheel of it would be a pre-release of 2020.
built() { grep -A1 "^name = \"$1\"" "$lock" | grep -q "^version = \"$2" || fail "another $1 than $2…"; }
try_lightning() { bare "$prefix/bin/accelerate" launch --help | grep -q -- --num_processes; }
try_llamafactory() {
  built deepspeed 0.
  grep -A20 '^name = "deepspeed"' "$lock" | grep -q '^\[wheel.built_from\]' || fail "deepspeed was not built"
  bare "$prefix/bin/llamafactory-cli" version | grep -q -i factory
}
try_vllm() { bare "$prefix/bin/vllm" --version > "$log.version.log" 2>&1 || tail -3 "$log.version.log"; }
try_sglang() { bare "$prefix/bin/python" -I -c 'import sglang; print(sglang.__version__)'; }
try_swift_all() { bare "$prefix/bin/swift" sft --help | grep -q '^usage: sft.py'; }
try_flash_attn() { bare "$prefix/bin/python" -I -c 'import flash_attn; print(flash_attn.__version__)'; }

# A package of several wheels: the signed manifest says who has files in whose.
shared() { grep -A1 "^shared  *wheels/$1" "$log.inspect.log" | grep "in $2," > /dev/null || fail "$1 does not share $2"; }
try_published() { bare "$prefix/bin/gdown" --version; }
try_mlflow() {
  grep -A1 '^left out of wheels/mlflow_skinny' "$log.inspect.log" | grep ' bin/mlflow,' > /dev/null || fail "both bring bin/mlflow"
  bare "$prefix/bin/mlflow" --version
}
try_clouds() { shared opencensus_ext_azure opencensus/ext; }
try_airflow() {
  shared apache_airflow_providers_ftp airflow/providers/ftp
  bare "$prefix/bin/airflow" version
}
try_transformer_engine() {
  shared transformer_engine_cu12 transformer_engine
  bare "$prefix/bin/python" -I -c 'import transformer_engine' > "$log.engine.log" 2>&1 || true
  grep 'OSError: libcuda.so.1' "$log.engine.log" > /dev/null || fail "it did not come as far as the driver"
}

for closure in "${closures[@]}"; do
  lock=$out/$closure.lock.toml log=$out/logs/$closure prefix=/opt/sealift/current
  echo "== $closure: lock"
  "$bin/sealift-pack" lock "$here/$closure.toml" -o "$lock" --cache "$cache" --launcher "$bin/sealift-start" 2>&1 | tee "$log.lock.log"
  echo "== $closure: create, without the rehearsal, which the next step is"
  rm -rf "$out/bundle"
  "$bin/sealift-pack" create "$lock" --root "$out/keys/root.1.json" --key "$out/keys/release.key" -o "$out/bundle" --cache "$cache" \
    --installer "$bin/sealift-install" --no-rehearsal 2>&1 | tee "$log.create.log"
  "$bin/sealift-pack" inspect "$out/bundle/$closure-1" > "$log.inspect.log"
  echo "== $closure: install on a bare host without a network"
  bare_host
  cp -l "$out/bundle/$closure-1/"* "$host/disc/"
  rm -rf "$out/bundle"
  bare /disc/sealift-install apply /disc --prefix /opt/sealift --fingerprint "$fingerprint" 2>&1 | tee "$log.apply.log"
  rm -rf "$host/disc"
  echo "== $closure: its programs"
  "try_$closure"
  echo "== $closure: import every module, load every console script"
  cp "$here/import_all.py" "$host/var/tmp/"
  lists=("$here/unimportable.txt")
  [ ! -e "$here/$closure.unimportable.txt" ] || lists+=("$here/$closure.unimportable.txt")
  cat "${lists[@]}" | bare "$prefix/bin/python" -I /var/tmp/import_all.py | tee "$log.imports.log"
done
echo "the closures work on a bare host: ${closures[*]}"
