#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# samples/repository/sealift-repo.service under the real systemd, which is process 1 of namespaces of its own over a
# copy-on-write view of this machine: it serves, takes its limits, reloads, comes again after a crash, and stops.
#   service_test.sh SEALIFT-REPO SEALIFT-INSTALL BUNDLE FINGERPRINT UNIT     exit status 77: not here
# Needs root, systemd, overlayfs and a unified cgroup tree. Nothing outside of its own folder is changed.
set -euo pipefail
[ "$(id -u)" -eq 0 ] && [ -x /lib/systemd/systemd ] || { echo "left out: needs root and systemd"; exit 77; }
tree=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$tree" ] || { echo "left out: there is no unified cgroup tree"; exit 77; }
if [ "${1:-}" != inside ]; then
  for word in "$@"; do [ -e "$word" ] || [ "$word" = "$4" ] || { echo "FAILED: no $word"; exit 1; }; done
  work=$(mktemp -d) group=$tree/sealift-service-test.$$
  mkdir -p "$work/up" "$work/work" "$work/root" "$work/old" "$group" || { echo "left out: no cgroup can be made"; exit 77; }
  boot=
  end() {
    [ -z "$boot" ] || kill -9 "$boot" 2>/dev/null || true  # the namespaces' first process: all others end with it
    sleep 0.2
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    rm -rf "$work"
  }
  trap end EXIT
  (echo "$BASHPID" > "$group/cgroup.procs"
   exec unshare -p -f -m -u -i -n -C --kill-child --propagation private "$0" inside "$work" "$@") > "$work/log" 2>&1 &
  child=$!
  for _ in $(seq 300); do
    boot=$(pgrep -P "$child" -f /lib/systemd/systemd) && break
    kill -0 "$child" 2>/dev/null || { cat "$work/log"; grep -q '^left out' "$work/log" && exit 77; exit 1; }
    sleep 0.1
  done
  in_it() { nsenter -t "$boot" -a -- "$@"; }
  show() { in_it systemctl show -p "$1" --value sealift-repo; }
  fail() { echo "FAILED: $*"; in_it systemctl --no-pager status sealift-repo || true; in_it journalctl --no-pager -n 40; exit 1; }
  active() {
    for _ in $(seq 150); do [ "$(show ActiveState 2>/dev/null)" = active ] && return; sleep 0.1; done
    fail "the service does not become active"
  }
  ask() { in_it curl -s -o /dev/null -w '%{http_code}' -u any:secret "http://127.0.0.1:8080$1"; }
  log=/var/log/sealift-repo/audit.jsonl
  active
  [ "$(in_it curl -s http://127.0.0.1:9090/healthz)" = good ] || fail "not healthy"
  [ "$(in_it curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/)" = 401 ] || fail "no token is wanted"
  name=$(in_it ls /srv/bundles)
  file=$(in_it curl -s -u any:secret "http://127.0.0.1:8080/entries/${name%-*}/SHA256SUMS" | awk '{ print $2; exit }')
  [ "$(ask "/entries/${name%-*}/$file")" = 200 ] || fail "no file"
  in_it grep -q "\"entry\":\"$file\".*\"user\":\"alice\"" $log || fail "no line in the audit log"
  first=$(show MainPID)
  in_it grep -q memfd:sealift-chunk "/proc/$first/maps" || fail "chunks are in no sealed memory files"
  for want in "NoNewPrivs:.1" "Seccomp:.2" "CapBnd:.0000000000000000" "Uid:.$(in_it id -u sealift-repo)"; do
    in_it grep -q "^$want" "/proc/$first/status" || fail "the process lacks $want"
  done
  in_it sh -c "mv $log $log.1 && systemctl reload sealift-repo"
  for _ in $(seq 100); do in_it test -e $log && break; sleep 0.1; done
  [ "$(ask /simple/)" = 200 ] && in_it grep -q '"target":"/simple/"' $log || fail "reload does not open the log anew"
  in_it sealift-repo remove /srv/bundles "$name"
  in_it systemctl reload sealift-repo
  for _ in $(seq 100); do [ "$(ask "/b/$name/simple/")" = 404 ] && break; sleep 0.1; done
  [ "$(ask "/b/$name/simple/")" = 404 ] || fail "reload does not look at the folder"
  in_it kill -9 "$first"
  sleep 1
  active
  [ "$(show MainPID)" != "$first" ] || fail "the process that was killed is still the main one"
  # The lines for a port below 1024, as a reader of the unit would have them.
  in_it sed -i 's/--listen 127.0.0.1:8080/--listen 127.0.0.1:443/; s/^#\([A-Z][A-Za-z]*=\)/\1/' \
    /etc/systemd/system/sealift-repo.service
  in_it systemctl daemon-reload
  in_it systemctl restart sealift-repo
  active
  in_it grep -q '^CapEff:.0000000000000400' "/proc/$(show MainPID)/status" || fail "another capability than to bind"
  [ "$(in_it curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:443/)" = 401 ] || fail "nothing at port 443"
  in_it systemctl stop sealift-repo
  [ "$(show ActiveState),$(show Result),$(show ExecMainStatus)" = inactive,success,0 ] || fail "it does not stop well"
  echo "the unit works under systemd $(/lib/systemd/systemd --version | awk '{ print $2; exit }')"
  exit 0
fi

work=$2 repo=$3 install=$4 bundle=$5 fingerprint=$6 unit=$7 root=$2/root
refuse() { echo "left out: $*"; exit 77; }
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/up,workdir=$work/work" "$root" 2>/dev/null || refuse "no overlayfs"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" || refuse "no sysfs"
mount -t tmpfs tmpfs "$root/sys/fs/cgroup" && mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || refuse "no cgroup tree"
for folder in run dev; do mount -t tmpfs tmpfs "$root/$folder"; done
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue" "$root/dev/hugepages"
mount -t devpts devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up 2>/dev/null || refuse "no loopback"

chroot "$root" useradd -r sealift-repo
cp "$repo" "$install" "$(dirname "$install")/audit.sh" "$root/usr/local/bin"
rm -rf "$root/etc/systemd/system"
mkdir -p "$root/etc/systemd/system" "$root/etc/sealift-repo" "$root/srv/bundles" "$root/srv/disc" "$root/opt/env"
cp "$unit" "$root/etc/systemd/system"
printf '[Unit]\nDefaultDependencies=no\nWants=sealift-repo.service systemd-journald.service\n' \
  > "$root/etc/systemd/system/sealift-test.target"
cp -r "$bundle"/. "$root/srv/disc"
chroot "$root" sealift-install trust add /srv/disc --prefix /opt/env --fingerprint "$fingerprint"
chroot "$root" sealift-repo add /srv/bundles /srv/disc
printf 'alice %s\n' "$(printf secret | sha256sum | cut -d' ' -f1)" > "$root/etc/sealift-repo/tokens"
chroot "$root" chown root:sealift-repo /etc/sealift-repo/tokens
chmod 640 "$root/etc/sealift-repo/tokens"

mkdir -p "$root$work/old"  # of its own mount, so that nothing of the machine stays below it
cd "$root"
mkdir -p old
pivot_root . old
cd /
umount -l /old
container=other exec /lib/systemd/systemd --system --unit=sealift-test.target < /dev/null
