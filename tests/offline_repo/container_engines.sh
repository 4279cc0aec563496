#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The engines that run containers pull from a server without TLS: containerd an image and a bundle, podman the image.
#   container_engines.sh PROGRAMS HOST DIGEST OUT     needs root, as containerd does
# PROGRAMS: where Debian's packages are unpacked. HOST has org/hello:1.0 with this digest, whose etc/hello says hello,
# and bundles/env:1. OUT, which exists, gets the bundle's files.
set -euo pipefail
programs=$1 host=$2 digest=$3 out=$(realpath "$4")
export PATH=$programs/usr/bin:$PATH LD_LIBRARY_PATH=$programs/usr/lib/x86_64-linux-gnu
work=$(mktemp -d)
containerd=
trap '[ -z "$containerd" ] || { kill "$containerd"; wait "$containerd" || true; }; rm -rf "$work"' EXIT
fail() { echo "container_engines: $1" >&2; exit 1; }

# A containerd of its own, without its plugin for Kubernetes and without file systems that need modules.
cat > "$work/config.toml" <<END
version = 2
root = "$work/root"
state = "$work/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "$work/socket"
END
containerd -c "$work/config.toml" > "$work/log" 2>&1 &
containerd=$!
ctr() { command ctr --address "$work/socket" "$@"; }
until ctr version > /dev/null 2>&1; do
  kill -0 "$containerd" || { cat "$work/log" >&2; fail "containerd does not start"; }
  sleep 0.05
done

ctr images pull --plain-http --snapshotter native "$host/org/hello:1.0" > /dev/null
[ "$(ctr images ls name=="$host/org/hello:1.0" | awk 'NR == 2 {print $3}')" = "$digest" ] || fail "another digest in containerd"
[ "$(cat "$work"/root/io.containerd.snapshotter.v1.native/snapshots/*/etc/hello)" = hello ] || fail "containerd unpacked another file"
# By its digest alone, as a cluster should ask.
ctr images pull --plain-http --snapshotter native "$host/org/hello@$digest" > /dev/null

# A bundle is no image: its content is fetched, and not unpacked. containerd does not wait when it is told to.
for round in $(seq 200); do
  ctr content fetch --plain-http "$host/bundles/env:1" > "$work/fetched" 2>&1 && break
  grep -q "429 Too Many Requests" "$work/fetched" || { cat "$work/fetched" >&2; fail "containerd cannot fetch a bundle"; }
  [ "$round" -lt 200 ] || fail "the server never reads its volumes"
  sleep 0.05
done
bundle=$(ctr images ls name=="$host/bundles/env:1" | awk 'NR == 2 {print $3}')
ctr content get "$bundle" | python3 -c '
import json, sys
for layer in json.load(sys.stdin)["layers"]:
    print(layer["digest"], layer["annotations"]["org.opencontainers.image.title"])' > "$work/layers"
while read -r layer title; do ctr content get "$layer" > "$out/$title"; done < "$work/layers"

echo '{"default": [{"type": "insecureAcceptAnything"}]}' > "$work/policy.json"
podman() {
  command podman --root "$work/podman" --runroot "$work/run" --storage-driver vfs --cgroup-manager cgroupfs \
    --events-backend none "$@"
}
podman pull --quiet --tls-verify=false --signature-policy "$work/policy.json" "$host/org/hello:1.0" > /dev/null
[ "$(podman image inspect --format '{{.Digest}}' "$host/org/hello:1.0")" = "$digest" ] || fail "another digest in podman"
[ "$(cat "$(podman image mount "$host/org/hello:1.0")/etc/hello")" = hello ] || fail "podman unpacked another file"
podman image umount --all > /dev/null
