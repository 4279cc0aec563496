#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A prefix on a real NFS server, used from two nodes: three virtual machines with Debian's own kernel, one serving an ext4 disk
# by nfsd, two mounting it. Installed once, seen by both; two installers at once; one that is killed; one whose node dies.
# By hand or `ctest -C slow -L network`: it downloads a kernel. Needs root, qemu-system-x86, nfs-kernel-server,
# busybox-static, kmod and e2fsprogs.
# The machines are emulated, as virtual ones are rarely allowed in a virtual one: some minutes.
# usage: nfs_test.sh BIN
set -euo pipefail
tests=$(dirname "$(readlink -f "$0")")/..
bin=$(realpath "$1")
PATH=$PATH:/usr/sbin:/sbin
skip() { echo "SKIPPED: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root"
for program in qemu-system-x86_64 busybox depmod mkfs.ext4 rpc.nfsd mount.nfs4; do
  command -v $program >/dev/null || skip "no $program"
done
. "$tests/support/hello_lock.sh"
work=$(mktemp -d)
trap '{ kill -9 $(jobs -p) && wait; } 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
fail() {
  echo "FAILED: $1" >&2
  for file in *.txt; do echo "--- $file" >&2; tail -n 20 "$file" >&2; done
  exit 1
}

# ---- four versions of a bundle with few files: a program that says its version, and some megabytes -------------------
export SEALIFT_CACHE=$work/cache
hello_interpreter
"$bin/sealift-pack" keygen keys >pack.txt
for version in 1 2 3 4; do
  printf '#!/bin/sh\necho "version %s on $(uname -n)"\n' $version >hello-$version
  head -c 8000000 /dev/urandom >ballast-$version
  hello_lock small $version test ballast-$version=bin/ballast hello-$version=bin/hello
  "$bin/sealift-pack" create small-$version.lock.toml --root keys/root.1.json --key keys/release.key -o out --no-rehearsal \
    >>pack.txt 2>&1 || fail "packing"
done

# ---- a kernel, and a first file system that mounts this machine's own, read-only -------------------------------------
if [ -n "${SEALIFT_TEST_KERNEL:-}" ]; then
  cp -r "$SEALIFT_TEST_KERNEL" kernel   # an unpacked linux-image package
else
  apt-get download -q "$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -1)" >download.txt 2>&1 ||
    skip "no kernel can be downloaded"
  dpkg-deb -x linux-image-*.deb kernel
fi
release=$(ls kernel/lib/modules)
depmod -b kernel "$release" 2>depmod.txt
mkdir -p first/bin first/modules
cp "$(command -v busybox)" first/bin/busybox
for module in virtio_pci virtio_net virtio_blk virtio_rng 9p 9pnet_virtio ext4 nfsv4 nfsd; do
  modprobe -d "$work/kernel" -S "$release" --show-depends $module
done 2>/dev/null | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >order
while read -r module; do
  cp "$module" first/modules/
  echo "${module##*/}"
done <order >first/modules/order
cat >first/init <<END
#!/bin/busybox sh
b=/bin/busybox
\$b mkdir -p /proc /sys /dev /root
\$b mount -t proc proc /proc; \$b mount -t sysfs sysfs /sys; \$b mount -t devtmpfs devtmpfs /dev
while read -r module; do \$b insmod /modules/\$module; done </modules/order
\$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro root /root
for place in proc sys dev; do \$b mount --move /\$place /root/\$place; done
for place in tmp run mnt var/lib/nfs; do \$b mount -t tmpfs tmpfs /root/\$place; done
\$b mkdir -p /root$work
\$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=none work /root$work
exec \$b chroot /root /bin/bash $work/guest.sh
END
chmod +x first/init
(cd first && find . | busybox cpio -o -H newc 2>/dev/null) >first.img

# What a machine does: the server serves; a node runs what is put into NAME.todo, one command after the other.
cat >guest.sh <<'END'
cd "$(dirname "$0")"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp
name=$(sed 's/.*machine=\([a-z]*\).*/\1/' /proc/cmdline)
hostname "$name"
ip link set lo up
if [ "$name" = server ]; then
  for i in 1 2; do ip address add 10.78.$i.1/24 dev eth$((i - 1)); ip link set eth$((i - 1)) up; done
  mkdir /mnt/disk /var/lib/nfs/v4recovery
  touch /var/lib/nfs/etab /var/lib/nfs/rmtab
  mount /dev/vda /mnt/disk
  mount -t nfsd nfsd /proc/fs/nfsd
  exportfs -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/mnt/disk'
  rpc.mountd
  rpc.nfsd -N 3 -L 10 -G 10 4   # a lease of 10 s; the kernel's own is 90
  echo Y >/proc/fs/nfsd/v4_end_grace
  touch server.up
  exec sleep infinity
fi
i=$([ "$name" = one ] && echo 1 || echo 2)
ip address add 10.78.$i.2/24 dev eth0
ip link set eth0 up
mkdir /mnt/shared
mount -t nfs4 -o vers=4.2,hard 10.78.$i.1:/ /mnt/shared && touch $name.up
while :; do
  until [ -e $name.todo ]; do sleep 0.1; done
  mv $name.todo $name.doing
  code=0
  bash $name.doing >$name.said 2>&1 </dev/null || code=$?
  echo $code >$name.code.new
  mv $name.code.new $name.code
done
END

# machine NAME OPTIONS...
machine() {
  local name=$1
  shift
  qemu-system-x86_64 -accel "${SEALIFT_TEST_ACCEL:-tcg}" -cpu Haswell-noTSX -m 1G -smp 1 -nographic -no-reboot -nodefaults -serial "file:$work/console-$name.txt" \
    -kernel kernel/boot/vmlinuz-* -initrd first.img -append "console=ttyS0 quiet panic=-1 machine=$name" \
    -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$work,mount_tag=work,security_model=none,multidevs=remap" "$@" >"qemu-$name.txt" 2>&1 &
  echo $! >"$name.pid"
}
# until_there FILE NAME: waits for FILE of a machine that lives
until_there() {
  local tries=0
  until [ -e "$1" ]; do
    kill -0 "$(cat "$2.pid")" 2>/dev/null || fail "$2 is gone"
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "$2 does not answer"
    sleep 0.1
  done
}
# start NODE COMMAND: does not wait; finish NODE: waits, prints what was said, has its exit code
start() {
  rm -f "$1.code"
  printf '%s\n' "$2" >"$1.todo.new"
  mv "$1.todo.new" "$1.todo"
}
finish() {
  until_there "$1.code" "$1"
  cat "$1.said"
  return "$(cat "$1.code")"
}
at() { start "$1" "$2"; finish "$1"; }

truncate -s 1G disk.img
mkfs.ext4 -q disk.img
wire() { echo "stream,id=$1,server=$2,addr.type=unix,addr.path=$work/$1.socket"; }
nic() { echo "virtio-net-pci,netdev=$1,mac=52:54:00:00:0$2"; }
machine server -drive file=disk.img,format=raw,if=virtio -netdev "$(wire first on)" -device "$(nic first 1:01)" \
  -netdev "$(wire second on)" -device "$(nic second 2:01)"
until_there server.up server
machine one -netdev "$(wire first off)" -device "$(nic first 1:02)"
machine two -netdev "$(wire second off)" -device "$(nic second 2:02)"
cp out/small-1/sealift-install installer
until_there one.up one
until_there two.up two
fingerprint=$(cat keys/root.fingerprint)
apply() { echo "$work/installer apply $work/out/small-$1 --prefix /mnt/shared/env --fingerprint $fingerprint --json"; }
hello=/mnt/shared/env/current/bin/hello

echo "one node installs, both use it"
at one "$(apply 1)" >one.txt || fail "apply on NFS"
grep -q "the prefix is on NFS" one.txt || fail "preflight does not know NFS"
[ "$(at one $hello)" = "version 1 on one" ] || fail "node one"
[ "$(at two $hello)" = "version 1 on two" ] || fail "node two"
at two "$(apply 1)" >two.txt && grep -q '"action":"nothing"' two.txt || fail "apply by the second node"
at two "$work/installer doctor --prefix /mnt/shared/env" >doctor.txt || fail "doctor by the second node"

echo "an installer on the other node is told who holds the prefix; one that is killed lets go at once"
start one "$(apply 2) & pid=\$!; until ls /mnt/shared/env/staging/*/ >/dev/null 2>&1; do :; done; kill -STOP \$pid; touch stopped
  until [ -e kill ]; do sleep 0.1; done; kill -9 \$pid; wait \$pid"
until_there stopped one
got=0
at two "$(apply 2)" >two.txt || got=$?
[ $got = 10 ] || fail "the second installer exited with $got"
grep -q '"got":"sealift-install apply, process [0-9]* on one since' two.txt || fail "it does not say who holds the prefix"
touch kill
got=0
finish one >one.txt || got=$?
[ $got = 137 ] || fail "the first was not killed: $got"
[ "$(at one $hello)" = "version 1 on one" ] || fail "the old environment does not work after a kill"
at two "$(apply 2)" >two.txt && grep -q '"action":"install"' two.txt || fail "apply after a kill"

echo "two at once: one version is installed once"
start one "$tests/../samples/many_machines/slurm/wait_and_apply.sh $(apply 3 | sed 's/ apply / /; s/ --json//')"
start two "$tests/../samples/many_machines/slurm/wait_and_apply.sh $(apply 3 | sed 's/ apply / /; s/ --json//')"
finish one >one.txt || fail "node one"
finish two >two.txt || fail "node two"
[ "$(cat one.txt two.txt | grep -c '"action":"install"')" = 1 ] || fail "not one installation"
[ "$(cat one.txt two.txt | grep -c '"action":"nothing"')" = 1 ] || fail "not one that found it installed"

echo "a node dies while it installs: the lock goes with its lease, the old environment works, the next one installs"
rm -f stopped
start one "$(apply 4) & pid=\$!; until ls /mnt/shared/env/staging/*/ >/dev/null 2>&1; do :; done; kill -STOP \$pid; touch stopped
  sleep 1000"
until_there stopped one
kill -9 "$(cat one.pid)"
wait "$(cat one.pid)" 2>/dev/null || true
began=$(date +%s)
[ "$(at two $hello)" = "version 3 on two" ] || fail "the old environment does not work after a node died"
at two "$tests/../samples/many_machines/slurm/wait_and_apply.sh $(apply 4 | sed 's/ apply / /; s/ --json//')" >two.txt ||
  fail "apply after a node died"
grep -q '"action":"install"' two.txt || fail "nothing was installed after a node died"
echo "  the next one had it after $(($(date +%s) - began)) s, with a lease of 10 s"
[ "$(at two $hello)" = "version 4 on two" ] && at two "$work/installer doctor --prefix /mnt/shared/env" >doctor.txt || fail "at the end"
