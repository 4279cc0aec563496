#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole story in one command: build, lock, pack and sign on this (connected) machine; carry the bundle into a bare
# Debian without network, Python or compiler; verify, install and train there; report what happened.
#   samples/air_gap.sh [--with-ms-swift] [OUT]
# OUT (default build/air_gap) gets bundle/, keys/, host/, logs/, verdict/, report.html, report.json.
#   --with-ms-swift   the bundle also holds ms-swift, a made Qwen, conversations and golden runs of them, and the carried
#                     sealift-verify checks at level full: `swift sft` inside must give what our trainer gave outside
# Installed programs are taken where they are (programs.sh), with the trainer's wheel beside them or its sealift-train on the
# PATH, and nothing is built; OUT is then air_gap here. A checkout needs Debian 12, root or a user with sudo, and 30 GB;
# installed programs 20 GB, and namespaces. The exit status is the report's verdict. Can be run again.
set -euo pipefail
usage() { sed -n 's/^# \{0,1\}//; 5,11p' "$0"; }
with_ms_swift= given=
for word in "$@"; do
  case $word in
    --with-ms-swift) with_ms_swift=yes ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "air_gap.sh: there is no option $word" >&2; usage >&2; exit 2 ;;
    *) [ -z "$given" ] || { echo "air_gap.sh: one folder, not $given and $word" >&2; usage >&2; exit 2; }; given=$word ;;
  esac
done
source "$(dirname "$0")/programs.sh"
here=$PWD
cd "$samples/.."
project=$PWD
root=${installed%/bin} trainer=${installed%/bin}     # of the tools, and of the trainer's wheel
if [ -n "$installed" ] && [ ! -x "$trainer/libexec/sealift-train" ]; then
  found=$(readlink -f "$(command -v sealift-train)") || true
  trainer=${found%/bin/*}
  if [ ! -x "$trainer/libexec/sealift-train" ]; then
    [ -x cmake/prerequisites.sh ] || {
      echo "air_gap.sh: sealift-train is neither in $root nor on the PATH; next: pip install sealift_trainer-*.whl" >&2
      exit 7
    }
    installed=  # a checkout builds both halves
  fi
fi
prefix=/opt/sealift                                  # on the bare host
if [ -n "$installed" ]; then
  [ -z "$with_ms_swift" ] || { echo "air_gap.sh: --with-ms-swift needs a checkout, which makes its Qwen" >&2; exit 2; }
  out=$(realpath -m "${given:-$here/air_gap}")
  bin=$installed
  cache=$out/cache
else
  out=$(realpath -m "${given:-build/air_gap}")
  tools=${SEALIFT_TOOLS_BUILD:-$project/build/tools} # a build folder whose bin/ holds the three tools
  bin=$tools/bin
  train=$project/build/release                       # a build folder that knows LibTorch
  cache=$project/build/prerequisites
fi
job=samples/air_gap.toml level=quick needs=air-gap   # what to pack, how much sealift-verify checks, what building needs
[ -z "$with_ms_swift" ] || job=samples/air_gap_ms_swift.toml level=full needs=ms-swift
job=${SEALIFT_JOB:-$job}                             # that, or that and more
started=$(date +%s)

mkdir -p "$out/logs"
rm -rf "$out/logs/"* "$out/report.html" "$out/report.json"
[ -z "$with_ms_swift" ] || echo qwen qwen_lora > "$out/logs/ms_swift"  # golden runs that swift must give
step=start

# stage NAME SENTENCE: what the operator reads, and what the report lists.
stage() {
  finish_stage ok
  step=$1
  step_started=$(date +%s.%N)
  printf '\n==> %-10s %s\n' "$1" "$2"
}
finish_stage() {
  [ "$step" = start ] || printf '%s\t%s\t%s\n' "$step" "$1" "$(echo "$(date +%s.%N) $step_started" | awk '{printf "%.1f", $1 - $2}')" >> "$out/logs/steps.tsv"
}
# Runs a command, shows its output and keeps it for the report.
logged() {
  local name=$1
  shift
  "$@" 2>&1 | tee -a "$out/logs/$name.log"
}
report() {
  local status=$?
  trap - EXIT
  wait  # for what is still being brought
  # Where the host's folder had to be made a mount point, a shared parent may have kept it as one.
  if [ "${mounts:-}" = bind ]; then while umount -l "$host" 2>/dev/null; do :; done; fi
  if [ "$status" -eq 0 ]; then finish_stage ok; else finish_stage failed; fi
  python3 samples/air_gap_report.py "$out" "$(($(date +%s) - started))" && exit "$status"
  exit 1
}
trap report EXIT

# ---- the connected side ----------------------------------------------------------------------------------------------

# While the processors compile the tools, or lock and pack, the network brings what the bare host is made of, and torch
# where something is built against it.
bring_the_rest() {
  [ -n "$installed" ] || cmake/prerequisites.sh "$needs"
  [ -f "$cache/bare-host.tar" ] || {
    mmdebstrap --quiet --format=tar --variant=minbase bookworm "$cache/bare-host.tar.partial"
    mv "$cache/bare-host.tar.partial" "$cache/bare-host.tar"
  }
}
brought() { wait "$rest" || { cat "$out/logs/prepare.log" >&2; exit 1; }; }
if [ -n "$installed" ]; then
  stage prepare "bring uv, and meanwhile what the bare host is unpacked from"
  mkdir -p "$cache"
  needs bwrap=bubblewrap patchelf=patchelf mmdebstrap=mmdebstrap unshare=util-linux ip=iproute2 file=file python3=python3
  [ "$(id -u)" -eq 0 ] || needs newuidmap=uidmap
  bring_uv "$cache/uv"
  bring_the_rest > "$out/logs/prepare.log" 2>&1 &
  rest=$!
  python=$(cd "$trainer/lib" && echo python3.*)
  sed -e "/^name = \"sealift-repo\"/,/^from/ s|\"../build/release/stage\"|\"$root\"|" \
    -e "s|\"../build/release/stage\"|\"$trainer\"|; s|\"../build/prerequisites/torch/lib/python3.11/|\"$trainer/lib/$python/|" \
    -e "s|\"air_gap_golden.toml\"|\"$samples/air_gap_golden.toml\"|" "$job" > "$out/job.toml"
  stage build "nothing: the programs are installed in $root, the trainer in $trainer"
  job=$out/job.toml
else
  stage prepare "install what building the tools needs: Debian's packages, uv"
  cmake/prerequisites.sh tools
  export PATH="$cache/uv/bin:$PATH"
  bring_the_rest > "$out/logs/prepare.log" 2>&1 &
  rest=$!
  stage build "build the tools (no LibTorch), then the trainer against torch, which is brought meanwhile"
  if [ "$tools" = "$project/build/tools" ]; then logged build cmake --preset tools -DSEALIFT_TESTS=OFF; fi
  logged build cmake --build "$tools" --target sealift-pack sealift-install sealift-start sealift-repo sealift-launch
  brought
  [ -f "$train/build.ninja" ] || logged build cmake --preset release -DSEALIFT_MERGE=ON
  logged build cmake --build "$train" --target sealift-train sealift-verify
  logged build cmake --install "$train" --component trainer --prefix "$train/stage" --strip
  install -m 0755 "$tools/bin/sealift-repo" "$tools/bin/sealift-launch" "$train/stage/bin"

  torch=$cache/torch
  made_qwen() {
    PYTHONPATH=$cache/peers "$torch/bin/python" samples/ms_swift/made_qwen.py build/made_qwen "$train/stage/bin" \
      "$torch/lib/python3.11/site-packages/torch/lib"
  }
  [ -z "$with_ms_swift" ] || logged build made_qwen
fi
pack=$bin/sealift-pack

stage lock "resolve for the target, pin every file by digest"
[ -f "$out/keys/root.1.json" ] || { rm -rf "$out/keys"; logged keygen "$pack" keygen "$out/keys"; }
fingerprint=$(cat "$out/keys/root.fingerprint")
logged lock "$pack" lock "$job" -o "$out/air_gap.lock.toml" --cache "$cache/downloads" \
  --launcher "$bin/sealift-start"

stage pack "fetch, check, pack and sign"
rm -rf "$out/bundle"
logged create "$pack" create "$out/air_gap.lock.toml" --root "$out/keys/root.1.json" --unsigned -o "$out/bundle" \
  --cache "$cache/downloads" --installer "$bin/sealift-install" --volume-size "${SEALIFT_VOLUME_SIZE:-1G}"
bundle=$(echo "$out"/bundle/*)
logged sign "$pack" sign "$bundle" --fingerprint "$fingerprint" --key "$out/keys/release.key"  # another account, in earnest
logged rehearse "$pack" rehearse "$bundle" --fingerprint "$fingerprint"
"$pack" inspect "$bundle" --fingerprint "$fingerprint" --json > "$out/logs/inspect.json"
ls -l "$bundle"

# ---- the air gap -----------------------------------------------------------------------------------------------------

host=$out/host
source samples/bare_host.sh

stage carry "make a bare Debian host; carry over the bundle and say the root's fingerprint, nothing else"
[ -z "$installed" ] || brought
if [ -e "$host" ]; then "${enter[@]}" rm -rf "$host"; fi
mkdir -p "$host"
"${enter[@]}" tar -C "$host" --exclude='./dev/*' -xf "$cache/bare-host.tar"
"${enter[@]}" rm -f "$host/etc/resolv.conf"  # names this machine's name server
"${enter[@]}" mkdir -p "$host/media/disc"
# Second names of the same bytes, where that is possible: 3 GB of disk. Nothing writes into them.
"${enter[@]}" cp -rl "$bundle/." "$host/media/disc/" 2> /dev/null || "${enter[@]}" cp -r --remove-destination "$bundle/." "$host/media/disc/"
inside /bin/sh -c 'for tool in python3 gcc openssl zstd curl; do if command -v $tool; then echo "$tool should not be here"; exit 1; fi; done'
inside /bin/sh -c 'others=$(tail -n +3 /proc/net/dev | grep -v "^ *lo:"); [ -z "$others" ] || { echo "a network is in reach: $others"; exit 1; }' 

# ---- the isolated side -----------------------------------------------------------------------------------------------

installer=/media/disc/sealift-install
stage verify "check signature and every chunk; the program is static: $(file -b "$bundle/sealift-install" | cut -d, -f1,2,4)"
inside $installer verify /media/disc --fingerprint "$fingerprint" --json | tee "$out/logs/verify.json"

stage install "unpack into the store, build a generation, self-test, switch"
inside $installer apply /media/disc --prefix $prefix --fingerprint "$fingerprint" --json | tee "$out/logs/apply.json"
inside $installer apply /media/disc --prefix $prefix --fingerprint "$fingerprint" --json | tee "$out/logs/apply_again.json"
inside $installer status --prefix $prefix --json > "$out/logs/status.json"

stage python "the carried Python: import torch, one DDP step over Gloo with two ranks"
inside /usr/bin/env TORCH_CPP_LOG_LEVEL=ERROR $prefix/current/bin/python -W ignore - < samples/air_gap_ddp.py | tee "$out/logs/python.json"

stage train "sealift-train: one process, ddp and fsdp with two ranks; only parallel_method changes"
for method in none ddp fsdp; do
  ranks=2
  [ $method = none ] && ranks=1
  logged train inside $prefix/current/bin/sealift-train run --parallel-method $method --ranks $ranks --threads 1 --out /var/tmp/train/$method
  inside cat /var/tmp/train/$method/result.json > "$out/logs/train_$method.json"
done
inside $prefix/current/bin/sealift-train check --json /var/tmp/train/none/result.json /var/tmp/train/ddp/result.json /var/tmp/train/fsdp/result.json \
  | tee "$out/logs/check.json"

stage verdict "sealift-verify: the checks of this site, and the report that it files"
verified=0
logged verdict inside $prefix/current/bin/sealift-verify run --level $level --ranks 2 --out /var/tmp/verdict || verified=$?
rm -rf "$out/verdict"
mkdir -p "$out/verdict"
for page in report.json report.html report.txt report.zh.html report.zh.txt; do
  inside cat /var/tmp/verdict/$page > "$out/verdict/$page"
done
cp "$out/verdict/report.json" "$out/logs/verdict.json"
[ "$verified" -eq 0 ]

stage serve "sealift-repo serves the bundle; pip installs from it into a new environment"
inside /bin/sh -euc "
  $prefix/current/bin/sealift-repo serve /media/disc --trust $prefix/trust --listen 127.0.0.1:8080 > /var/tmp/repo.out &
  until grep -q listening /var/tmp/repo.out; do sleep 0.1; kill -0 \$!; done
  $prefix/current/bin/python -m venv --without-pip /var/tmp/fresh
  $prefix/current/bin/python -m pip --python /var/tmp/fresh/bin/python install --no-cache-dir --disable-pip-version-check \\
    --index-url http://127.0.0.1:8080/simple/ sympy
  /var/tmp/fresh/bin/python -c 'import sympy; print(\"sympy\", sympy.__version__, \"from\", sympy.__file__)'
  kill \$!" 2>&1 | tee "$out/logs/serve.log"
grep -q '^sympy .* from /var/tmp/fresh/' "$out/logs/serve.log"

stage report "write $out/report.html and report.json"
