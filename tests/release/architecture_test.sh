#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The .deb, the .rpm and the archive on a system of another architecture, an i386 Debian, which this processor runs: each
# is refused in one line that names both, and leaves nothing. Needs Debian's server. A wheel's tag is wheels_test.sh's.
#   architecture_test.sh SOURCE PACKAGES
set -euo pipefail
source=$1 packages=$2 bare=$1/build/prerequisites/bare-i386.tar
version=$(cat "$source/VERSION")
fail() { echo "FAILED: $*" >&2; exit 1; }
left_out() { echo "left out: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || left_out "needs root for chroot"
for tool in mmdebstrap arch-test rpm linux32; do command -v $tool > /dev/null || left_out "needs $tool"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
[ -f "$bare" ] || {
  mmdebstrap --quiet --format=tar --variant=minbase --architectures=i386 bookworm "$bare.partial"
  mv "$bare.partial" "$bare"
}
mkdir "$root" && tar -C "$root" --exclude='./dev/*' -xf "$bare"
mknod -m 666 "$root/dev/null" c 1 3
cp "$packages/sealift_${version}_amd64.deb" "$root/tmp/sealift.deb"
inside() { linux32 chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
refused() { # refused WORDS COMMAND...: no line but one of WORDS, besides what the tool always says
  local words=$1
  shift
  ! "$@" > "$work/said" 2>&1 || fail "taken: $*"
  cat "$work/said"
  [ "$(grep -cF "$words" "$work/said")" = 1 ] || fail "not one line with: $words"
  find "$root/usr" "$root/var/lib/dpkg/info" -name '*sealift*' | grep . && fail "the refused package left files"
  return 0
}
echo "== dpkg and apt of an i386 Debian"
refused 'package architecture (amd64) does not match system (i386)' inside dpkg -i /tmp/sealift.deb
refused 'sealift:amd64' inside apt-get -q install -y --no-install-recommends /tmp/sealift.deb
echo "== rpm on a machine that is i686"
refused 'is intended for a different architecture' linux32 rpm --root "$root" --nodeps -i "$packages/sealift-$version-1.x86_64.rpm"
echo "== the archive"
mkdir "$work/archive" && tar -C "$work/archive" --strip-components=1 -xf "$packages/sealift-$version-linux-x86_64.tar.zst"
mv "$work/archive" "$root/opt/archive"
refused 'this archive is for x86_64, and this machine is i686; next: ' inside /opt/archive/bin/sealift-pack --version
[ "$(wc -l < "$work/said")" = 1 ] || fail "the archive says more than one line"
echo "refused by each on another architecture"
