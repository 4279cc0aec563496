#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The installed environment on other hosts: without /proc, moved to another place, on a newer Debian, as an ordinary
# user; and the refusal on an older Debian.
#   hosts_test.sh OUT BIN
set -euo pipefail
out=$1
cache=$(realpath "$(dirname "$0")/../../build/prerequisites")
bundle=$(echo "$out"/bundle/*)
fingerprint=$(cat "$out/keys/root.fingerprint")
[ "$(id -u)" -eq 0 ] || { echo "needs root for chroot: not run"; exit 77; }
bare=(unshare --net --)
try='import torch, ssl, sqlite3; x = torch.arange(6.).reshape(2, 3); print("sum", (x @ x.T).sum().item())'

host=$out/host
rm -rf "$host"/dev/* && mkdir "$host/dev/shm"
mknod -m 666 "$host/dev/null" c 1 3 && mknod -m 666 "$host/dev/urandom" c 1 9  # torch itself asks for these two
mv "$host/opt/sealift" "$host/opt/moved here"
echo "== no /proc, next to no /dev, moved to a path with a space"
"${bare[@]}" chroot "$host" "/opt/moved here/current/bin/python" -W ignore -c "$try" | tee "$out/logs/hosts.log"
"${bare[@]}" chroot "$host" "/opt/moved here/current/bin/torchrun" --help | head -1
"${bare[@]}" chroot "$host" "/opt/moved here/current/bin/sealift-train" run --steps 2 --ranks 1 --threads 1 --out /var/tmp/bare 2>&1 | tail -1
mv "$host/opt/moved here" "$host/opt/sealift"
grep -qx 'sum 83.0' "$out/logs/hosts.log"
rm -rf "$host"  # 7.5 GB, and the next host needs room for as much; end_to_end.air_gap makes it anew

root_of() {  # root_of SUITE: a bare host of that suite, made once
  [ -f "$cache/bare-$1.tar" ] || { mmdebstrap --quiet --format=tar --variant=minbase "$1" "$cache/bare-$1.tar.partial"; mv "$cache/bare-$1.tar.partial" "$cache/bare-$1.tar"; }
  rm -rf "$out/$1" && mkdir -p "$out/$1" && tar -C "$out/$1" -xf "$cache/bare-$1.tar"
  mkdir -p "$out/$1/disc" && cp -l "$bundle"/* "$out/$1/disc/"
}

echo "== a newer Debian, installed by an ordinary user"
root_of trixie
mkdir "$out/trixie/srv/env" && chown 1234:1234 "$out/trixie/srv/env"
"${bare[@]}" chroot --userspec=1234:1234 "$out/trixie" /disc/sealift-install apply /disc --prefix /srv/env/p --fingerprint "$fingerprint" 2>&1 | tail -3
"${bare[@]}" chroot --userspec=1234:1234 "$out/trixie" /srv/env/p/current/bin/python -W ignore -c "$try" | grep -qx 'sum 83.0'
rm -rf "$out/trixie"

echo "== an older Debian is refused before anything is written"
root_of bullseye
status=0
"${bare[@]}" chroot "$out/bullseye" /disc/sealift-install apply /disc --prefix /opt/p --fingerprint "$fingerprint" > "$out/logs/older.log" 2>&1 || status=$?
cat "$out/logs/older.log"
[ "$status" = 8 ] && grep -q '2\.31' "$out/logs/older.log" && grep -q '2\.36' "$out/logs/older.log" && [ ! -e "$out/bullseye/opt/p" ]
rm -rf "$out/bullseye"
echo "the environment works on other hosts, and is refused where it cannot"
