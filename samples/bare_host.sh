#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How a script of this (connected) machine runs a command on the bare host in the folder $host: `inside COMMAND...`.
# Sourced by air_gap.sh, and by tests that go on where it ended.
# The host has its own network, mounts and processes: only loopback, no files but its own.
enter=(unshare --net --pid --fork --kill-child)
[ "$(id -u)" -eq 0 ] || enter+=(--user --map-root-user --map-auto)
mounts=private
if "${enter[@]}" --mount true 2>/dev/null; then
  enter+=(--mount)
else  # this machine's own root is no mount point, as in a chroot: the host's folder is made one, and that private
  enter+=(--mount --propagation unchanged)
  mounts=bind
fi
# inside COMMAND...: on the bare host, with nothing of this machine's environment.
inside() {
  "${enter[@]}" sh -c '
    host=$1; mounts=$2; shift 2
    ip link set lo up
    if [ "$mounts" = bind ]; then mount --bind "$host" "$host" && mount --make-private "$host"; fi
    mount -t proc proc "$host/proc" 2>/dev/null || mount --rbind /proc "$host/proc"
    for node in null zero full random urandom; do
      [ -e "$host/dev/$node" ] || : > "$host/dev/$node"
      mount --bind "/dev/$node" "$host/dev/$node"
    done
    mkdir -p "$host/dev/shm" && mount -t tmpfs tmpfs "$host/dev/shm"
    exec chroot "$host" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/var/tmp "$@"' sh "$host" "$mounts" "$@"
}
