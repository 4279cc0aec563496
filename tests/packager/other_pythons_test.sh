#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Interpreters of other Debians, from their roots in a folder: bullseye's (3.9) is carried with its own libraries and
# imports what needs them; without `system` the warning names it. One of trixie (3.13) is for a newer system than Debian
# 12, and is refused with what to do; where this system is as new, it is carried. Needs Debian's archive, the package index
# and mmdebstrap; by label `network`.
#   other_pythons_test.sh BIN UV
set -euo pipefail
bin=$(realpath "$1") uv=$(realpath "$2")
command -v mmdebstrap > /dev/null && [ "$(uname -m)" = x86_64 ] || { echo "skipped: needs mmdebstrap on x86-64"; exit 77; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export SEALIFT_CACHE=$work/cache SEALIFT_UV=$uv
"$bin/sealift-pack" keygen keys > fingerprint

root_of() { mmdebstrap --quiet --variant=extract --include="$2" "$1" "$work/$1"; }
pack() {  # SUITE VERSION GLIBC [MORE OF TARGET]
  cat > "$1.toml" << END
name = "$1"
version = 1
[target]
arch = "x86_64"
glibc = "$3"
${4-}
[python]
version = "$2"
interpreter = "$work/$1/usr/bin/python$2"
requirements = ["six"]
imports = ["six", "ssl", "sqlite3", "ctypes", "zlib", "bz2", "lzma", "uuid"]
END
  "$bin/sealift-pack" lock "$1.toml" > "$1.log" 2>&1 &&
    "$bin/sealift-pack" create "$1.lock.toml" --root keys/root.1.json --key keys/release.key -o "out-$1" >> "$1.log" 2>&1
}

root_of bullseye python3,python3-distutils
pack bullseye 3.9 2.36 && { echo "FAILED: without its libraries it was rehearsed"; exit 1; }
next=$(sed -n 's/.*; \[target\] \(system = ".*"\) takes it from there/\1/p' bullseye.log | sort -u)
[ "$next" = "system = \"$work/bullseye\"" ] || { echo "FAILED: no way on"; cat bullseye.log; exit 1; }
rm -rf out-bullseye
pack bullseye 3.9 2.31 "$next" && grep -q '^rehearsed: ' bullseye.log || { echo "FAILED: bullseye"; cat bullseye.log; exit 1; }
echo "bullseye's 3.9, with its own libraries: rehearsed"

root_of trixie python3
if pack trixie 3.13 2.41 "system = \"$work/trixie\""; then
  echo "trixie's 3.13: packed"
else
  grep -q 'for a newer system than this machine' trixie.log && grep -q 'a container will do' trixie.log ||
    { echo "FAILED: trixie"; cat trixie.log; exit 1; }
  echo "trixie's 3.13: refused on an older system, with what to do"
fi
