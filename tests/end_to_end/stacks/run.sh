#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whole stacks that people train with: each is locked for Debian 11, packed, rehearsed, installed on bare hosts of Debian
# 11, 12 and 13 without a network, takes one step there, and is held to what uv installs of the same requirements.
#   SEALIFT_STACK_PYTHON=FOLDER tests/end_to_end/stacks/run.sh [OUT [BIN [STACK…]]]    OUT build/stacks, BIN build/tools/bin
# FOLDER holds bin and lib of a CPython 3.11 that needs no glibc newer than Debian 11's, as uv installs one. What was seen:
# stacks/README.md. By hand: root, a network, up to 25 GB in OUT, ten minutes a stack once its files are in the cache
# (SEALIFT_CACHE, build/prerequisites/downloads). What was installed is deleted again; locks and logs stay.
# SEALIFT_STACK_HOSTS="bullseye trixie" takes fewer hosts, SEALIFT_STACK_CREATE=--no-rehearsal saves a minute a stack,
# SEALIFT_STACK_HOST_PACKAGES=g++,ninja-build gives the hosts what a site has that compiles.
set -euo pipefail
project=$(realpath "$(dirname "$0")/../../..")
here=$project/tests/end_to_end/stacks
out=$(realpath -m "${1:-$project/build/stacks}")
bin=$(realpath -m "${2:-$project/build/tools/bin}")
stacks=("${@:3}")
[ "${#stacks[@]}" -gt 0 ] || for job in "$here"/*.toml; do stacks+=("$(basename "$job" .toml)"); done
python=${SEALIFT_STACK_PYTHON:?names a folder with bin and lib of a CPython 3.11 for Debian 11}
prerequisites=$project/build/prerequisites
cache=${SEALIFT_CACHE:-$prerequisites/downloads}
[ "$(id -u)" -eq 0 ] || { echo "needs root for chroot: not run"; exit 77; }
export PATH=/usr/bin:$prerequisites/uv/bin:$PATH UV_CACHE_DIR=$out/uv-cache

mkdir -p "$out/logs"
host=$out/host prefix=/opt/sealift/current
source "$project/samples/bare_host.sh"
# Removal waits at each file, so eight wait beside each other: bench/README.md.
gone() {
  [ ! -e "$1" ] || find "$1" -xdev -depth -type d -print0 \
    | xargs -0r -n 40 -P 8 sh -c 'for folder; do find "$folder" -maxdepth 1 ! -type d -delete; done' sh
  rm -rf "$1"
}
end() { if [ "$mounts" = bind ]; then while umount -l "$host" 2>/dev/null; do :; done; fi; gone "$host"; rm -rf "$host.gone" "$out/bundle" "$out/wheels" "$out/uv-cache"; }
trap end EXIT
[ -f "$out/keys/root.1.json" ] || { rm -rf "$out/keys"; "$bin/sealift-pack" keygen "$out/keys" > "$out/logs/keygen.log" 2>&1; }
fingerprint=$(cat "$out/keys/root.fingerprint")
faults=0
told() { echo "$stack: $*" | tee -a "$out/logs/$stack.told.log"; }
timed() { local name=$1 began=$SECONDS status=0; shift; "$@" > "$log.$name.log" 2>&1 || status=$?; told "$name: $([ $status = 0 ] && echo ok || echo "FAILED ($status): $(grep -v '^ *$' "$log.$name.log" | tail -1 | cut -c1-300)"), $((SECONDS - began)) s"; return $status; }

bare_host() {  # bare_host SUITE. A host has some hundred thousand files, whose removal takes minutes: beside what follows
  local name=$1
  [ "$name" != bookworm ] || name=host
  local tar=$prerequisites/bare-$name.tar more=${SEALIFT_STACK_HOST_PACKAGES:-}
  [ -z "$more" ] || tar=$out/bare-$name-$more.tar
  [ -f "$tar" ] || { mmdebstrap --quiet --format=tar --variant=minbase ${more:+--include="$more"} "$1" "$tar.partial"; mv "$tar.partial" "$tar"; }
  if [ -e "$host" ]; then
    wait
    mv "$host" "$host.gone"
    gone "$host.gone" &
  fi
  mkdir -p "$host/disc"
  tar -C "$host" --exclude='./dev/*' -xf "$tar"
  mkdir "$host/var/tmp/steps" && cp "$here"/*.py "$here"/steps/*.py "$host/var/tmp/steps/"
}

# What uv chooses by itself for such a host, against the lock; one name==version a line.
resolved_as_uv() {
  "$python/bin/python3.11" -I "$here/lock_reader.py" versions "$lock" > "$log.locked"
  "$python/bin/python3.11" -I "$here/lock_reader.py" requirements "$out/$stack.toml" > "$out/$stack.in"
  uv pip compile --quiet --python "$python/bin/python3.11" --python-platform x86_64-manylinux_2_31 --no-header --no-annotate \
    --output-file "$log.uv" "$out/$stack.in" || return 1
  diff <(sed 's/ ;.*//' "$log.uv" | grep -v '^#' | sort) "$log.locked"
}

# The locked wheels as uv installs them, into a Python beside ours on the first host.
peer() {
  rm -rf "$out/wheels" && mkdir "$out/wheels" && cp -a "$python" "$host/opt/peer"
  "$python/bin/python3.11" -I "$here/lock_reader.py" wheels "$lock" | while read -r sha file; do ln "$cache/sha256/$sha" "$out/wheels/$file"; done
  uv pip install --quiet --offline --no-index --no-deps --python "$host/opt/peer/bin/python3.11" "$out"/wheels/*.whl
  { grep -lIF "$host/opt/peer" "$host"/opt/peer/bin/* || true; } | xargs -r sed -i "s#$host/opt/peer#/opt/peer#g"  # first lines of programs
  rm -rf "$out/wheels" "$out/uv-cache/archive-v0"
}
step() { inside /usr/bin/env DO_NOT_TRACK=1 MODELSCOPE_OFFLINE=1 HF_HUB_OFFLINE=1 timeout 600 "$1" /var/tmp/steps/"${stack}_step.py"; }
lists() { inside "$1" -I /var/tmp/steps/imports.py --list; }
imports() { inside timeout 1800 "$1" -I /var/tmp/steps/imports.py; }

# One environment against the other: what is there, what can be imported, what the step says.
compare() {
  local ours=$prefix/bin/python theirs=/opt/peer/bin/python3.11
  timed peer-install peer || { faults=1; return 0; }
  lists "$ours" > "$log.list.ours" && lists "$theirs" > "$log.list.theirs"
  diff "$log.list.ours" "$log.list.theirs" > "$log.list.diff" && told "the same $(wc -l < "$log.list.ours") distributions" \
    || { faults=1; told "DISTRIBUTIONS DIFFER: $log.list.diff"; }
  imports "$ours" > "$log.imports.ours" 2> "$log.imports.err" & local other=$!
  imports "$theirs" > "$log.imports.theirs" 2> "$log.imports.their-err" || told "imports ended"
  wait $other || told "imports ended"
  diff "$log.imports.ours" "$log.imports.theirs" > "$log.imports.diff" \
    && told "the same imports: $(grep -c 'OK$' "$log.imports.ours") of $(wc -l < "$log.imports.ours")" \
    || { faults=1; told "IMPORTS DIFFER: $(grep -c 'OK$' "$log.imports.ours") of $(wc -l < "$log.imports.ours"), $(grep -c 'OK$' "$log.imports.theirs") of $(wc -l < "$log.imports.theirs")"; }
  timed step-peer step "$theirs" || true
  told "step of the peer: $(grep '^step: ' "$log.step-peer.log" | tail -1)"
}

try_stack() {
  timed lock "$bin/sealift-pack" lock "$out/$stack.toml" -o "$lock" --cache "$cache" --launcher "$bin/sealift-start" || return 1
  told "$(grep '^locked ' "$log.lock.log")"
  timed uv resolved_as_uv || true
  rm -rf "$out/bundle"
  timed create "$bin/sealift-pack" create "$lock" --root "$out/keys/root.1.json" --key "$out/keys/release.key" -o "$out/bundle" \
    --cache "$cache" --installer "$bin/sealift-install" ${SEALIFT_STACK_CREATE:-} || return 1
  told "$(grep '^rehears' "$log.create.log" | tail -1 || true)"
  for suite in ${SEALIFT_STACK_HOSTS:-bullseye trixie bookworm}; do
    bare_host "$suite" || return 1
    cp -l "$out/bundle/$stack-1/"* "$host/disc/"
    timed "apply-$suite" inside /disc/sealift-install apply /disc --prefix /opt/sealift --fingerprint "$fingerprint" || { faults=1; continue; }
    rm -rf "$host/disc"
    timed "step-$suite" step "$prefix/bin/python" || faults=1
    told "step on $suite: $(grep '^step: ' "$log.step-$suite.log" | tail -1)"
    [ "$suite" != "${SEALIFT_STACK_COMPARE:-bullseye}" ] || compare
  done
  gone "$host"
  rm -rf "$out/bundle"
}

if [ ! -d "$out/system" ]; then  # from which libraries for Debian 11 are carried
  rm -rf "$out/system.partial"
  mmdebstrap --quiet --variant=extract --include=libstdc++6,zlib1g,libgomp1 bullseye "$out/system.partial"
  mv "$out/system.partial" "$out/system"
fi
for stack in "${stacks[@]}"; do
  lock=$out/$stack.lock.toml log=$out/logs/$stack
  rm -f "$log".*
  sed "s#@PYTHON@#$python#; s#@HOST@#$here/hosts/debian-11.toml#; s#@SYSTEM@#$out/system#g" "$here/$stack.toml" > "$out/$stack.toml"
  try_stack || { faults=1; told "stopped"; gone "$host"; rm -rf "$out/bundle"; }
done
exit $faults
