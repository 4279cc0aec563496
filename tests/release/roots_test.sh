#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The packages that packages_test.sh made, in other systems' roots and without a network: a system that is too old is
# refused in one line and keeps nothing; a .rpm is installed, used and removed in a root of its own.
#   roots_test.sh SOURCE PACKAGES
set -euo pipefail
source=$1 packages=$2 cache=$1/build/prerequisites
version=$(cat "$source/VERSION")
fail() { echo "FAILED: $*" >&2; exit 1; }
left_out() { echo "left out: $*"; exit 77; }
[ "$(id -u)" -eq 0 ] || left_out "needs root for chroot"
for tool in rpm rpmbuild /usr/lib/rpm/elfdeps; do command -v "$tool" > /dev/null || left_out "needs $tool"; done
for root in host bullseye; do
  [ -f "$cache/bare-$root.tar" ] || left_out "build/prerequisites/bare-$root.tar is not there: end_to_end makes it"
done
deb=$packages/sealift_${version}_amd64.deb rpm=$packages/sealift-$version-1.x86_64.rpm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for root in host bullseye; do
  mkdir "$work/$root" && tar -C "$work/$root" --exclude='./dev/*' -xf "$cache/bare-$root.tar"
  mknod -m 666 "$work/$root/dev/null" c 1 3
done
floor=$(dpkg-deb -f "$deb" Depends | sed 's/libc6 (>= \([0-9.]*\)).*/\1/')

echo "== a Debian that is too old: its own dpkg, one line of ours, nothing left"
cp "$deb" "$work/bullseye/tmp/sealift.deb"
status=0
chroot "$work/bullseye" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg -i /tmp/sealift.deb > "$work/said" 2>&1 || status=$?
cat "$work/said"
[ "$status" != 0 ] || fail "an older Debian took the .deb"
[ "$(grep -c '^sealift: ' "$work/said")" = 1 ] || fail "not one line of ours"
grep '^sealift: ' "$work/said" | grep -F 'glibc 2.31' | grep -F "needs $floor" | grep -qF 'Debian 12' || fail "the line has not both versions and a system to take"
find "$work/bullseye/usr" -name '*sealift*' | grep . && fail "the refused package left files"

echo "== a Debian without libcurl: dpkg says what is missing"
cp "$deb" "$work/host/tmp/sealift.deb"
! chroot "$work/host" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg -i /tmp/sealift.deb > "$work/said" 2>&1 || fail "a Debian without libcurl took the .deb"
grep -F 'depends on libcurl4 (>= 7.85)' "$work/said" || fail "$(cat "$work/said")"
chroot "$work/host" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg -r sealift > /dev/null
find "$work/host/usr" -name '*sealift*' | grep . && fail "the removed package left files"

echo "== the archive in both: one line of ours"
for root in host bullseye; do
  mkdir "$work/$root/opt/archive" && tar -C "$work/$root/opt/archive" --strip-components=1 -xf "$packages/sealift-$version-linux-x86_64.tar.zst"
done
said() { # said ROOT WORDS
  local status=0
  chroot "$work/$1" /usr/bin/env -i PATH=/usr/bin:/bin /opt/archive/bin/sealift-pack --version > "$work/said" 2>&1 || status=$?
  cat "$work/said"
  [ "$status" = 8 ] && [ "$(wc -l < "$work/said")" = 1 ] && grep -qF "$2" "$work/said" || fail "not one line with: $2"
  [ "$(chroot "$work/$1" /opt/archive/bin/sealift-install --version)" = "sealift-install $version" ] || fail "sealift-install does not start in $1"
}
said bullseye "this system has glibc 2.31, and sealift-pack needs $floor; next: take Debian 12"
said host 'libcurl.so.4 is not here; next: apt-get install libcurl4'
rm -r "$work"/*/opt/archive

# An rpm database knows none of Debian's packages. A made package says what the root's libraries provide, in the words that
# rpm's own tool has for these very files, and a libcurl of that version, which the root has not.
system() { # system ROOT CURL
  {
    printf 'Name: system\nVersion: 1\nRelease: 1\nSummary: what lies in this root\nLicense: none\nBuildArch: x86_64\nAutoReqProv: no\n'
    for library in "$work/$1"/lib/x86_64-linux-gnu/{libc.so.6,libm.so.6} "$work/$1/bin/sh"; do readlink -f "$library"; done |
      /usr/lib/rpm/elfdeps --provides | sort -u | sed 's/^/Provides: /'
    printf 'Provides: libcurl.so.4()(64bit)\nProvides: libcurl = %s\n%%description\n.\n%%files\n' "$2"
  } > "$work/$1.spec"
  rpmbuild --quiet -bb --define "_topdir $work/rpmbuild" --define "_rpmdir $work/$1.rpms" "$work/$1.spec"
  rpm --root "$work/$1" -i "$work/$1.rpms/x86_64/system-1-1.x86_64.rpm"
}
refused() { # refused ROOT WORDS: one line that says WORDS
  ! rpm --root "$work/$1" -i "$rpm" 2> "$work/said" || fail "$1 took the .rpm"
  cat "$work/said"
  [ "$(grep -c 'is needed by' "$work/said")" = 1 ] && grep -qF "$2 is needed by sealift" "$work/said" || fail "not one line with $2"
  [ ! -e "$work/$1/usr/lib/sealift" ] || fail "the refused package left files"
}
echo "== a system of rpm that is too old"
system bullseye 8.4.0
refused bullseye "libc.so.6(GLIBC_$floor)(64bit)"

echo "== one whose libcurl is too old, then one that is new enough: installed, used, removed"
system host 7.76.1
refused host '(libcurl >= 7.85 or libcurl4 >= 7.85)'
rpm --root "$work/host" -e system
system host 8.4.0
rpm --root "$work/host" -i "$rpm"
[ "$(chroot "$work/host" /usr/bin/sealift-install --version)" = "sealift-install $version" ] || fail "sealift-install does not start"
chroot "$work/host" /usr/bin/sealift-install probe > "$work/probe" || fail "sealift-install probe"
grep -q 'glibc = "2.36"' "$work/probe" || fail "probe: $(cat "$work/probe")"
rpm --root "$work/host" -V sealift
rpm --root "$work/host" -e sealift
find "$work/host/usr" -name '*sealift*' | grep . && fail "the removed package left files"
echo "refused where it must be, and whole where it is taken"
