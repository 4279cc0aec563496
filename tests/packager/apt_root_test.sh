#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real Debian packages on the whole way: resolved by apt for this machine's suite, packed, installed by the real installer,
# and from there by apt in a bare system that has no network. Needs root, a Debian mirror and the package index; by label
# `network`.
#   apt_root_test.sh BIN UV [PACKAGE PROGRAM]    PROGRAM: what proves that PACKAGE works; default: make, make
set -euo pipefail
bin=$(realpath "$1") uv=$(realpath "$2") package=${3:-make} program=${4:-make}
command -v mmdebstrap > /dev/null && command -v unshare > /dev/null || { echo "skipped: needs mmdebstrap and unshare"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 0; }
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
export SEALIFT_CACHE=$work/cache

cat > job.toml <<END
name = "tools"
version = 1
[target]
arch = "x86_64"
glibc = "2.36"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["pip"]
imports = ["pip"]
[apt]
suite = "$suite"
packages = ["$package"]
END
"$bin/sealift-pack" keygen keys > fingerprint
"$bin/sealift-pack" lock job.toml --uv "$uv"
"$bin/sealift-pack" create tools.lock.toml --root keys/root.1.json --key keys/release.key -o out --no-rehearsal
mmdebstrap --quiet --variant=minbase "$suite" root
[ ! -e "root/usr/bin/$program" ]
"$bin/sealift-install" apply out/tools-1 --prefix "$work/root/opt/env" --fingerprint "$(cat fingerprint)"

# As the packager's README says; the system's own sources would want a network.
rm -rf root/etc/apt/sources.list root/etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:/opt/env/current/apt ./" > root/etc/apt/sources.list.d/sealift.list
unshare --net chroot root sh -ec "apt-get update; apt-get install -y --no-install-recommends $package"
unshare --net chroot root "$program" --version
