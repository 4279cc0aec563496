#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An aarch64 target, from an x86-64 machine: made wheels with native aarch64 libraries and Debian's arm64 Python are locked,
# packed and signed here; the cross-built sealift-install installs them in a bare arm64 root without a network, under
# qemu-user: the whole bundle, then one with a carried glibc for a profile's older one. A flipped bit is refused.
#   aarch64_test.sh BIN ARM64_BIN UV      BIN: sealift-pack of this machine; ARM64_BIN: build/aarch64/bin
#   cmake/aarch64.sh && ctest --test-dir build/release -C slow -R aarch64
# With SEALIFT_AARCH64_TORCH=1 torch 2.11.0 is packed, installed and used as well, in some minutes more.
# The kernel gives qemu the programs, by a binfmt_misc of this test's own user namespace (Linux 6.7): nothing of this
# machine is registered or changed. Timings are qemu-user's and say nothing about a real processor.
set -euo pipefail
here=$(dirname "$(realpath "$0")") project=$(realpath "$(dirname "$0")/../..")
bin=$(realpath "$1") arm=$(realpath -m "$2") uv=$(realpath -m "$3") parts=$project/build/prerequisites/aarch64
qemu=$(command -v qemu-aarch64-static || true) compiler=aarch64-linux-gnu-gcc-12
skip() { echo "SKIPPED: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
{ [ -n "$qemu" ] && [ -x "$(command -v $compiler)" ] && [ -f "$parts/python.stamp" ]; } || skip "cmake/prerequisites.sh aarch64 was not run"
[ -x "$arm/sealift-install" ] || skip "nothing is built in $arm: cmake/aarch64.sh"
[ "$(uname -m)" = x86_64 ] || skip "a cross build is for x86-64 machines"
work=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server" 2> /dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

# As root of namespaces of its own: no network but an unconnected loopback, no processes but its own.
cat > enter.sh <<'END'
set -e
mount -t proc proc /proc
mount -t binfmt_misc binfmt /proc/sys/fs/binfmt_misc
printf '%s' ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$1"':PF' > /proc/sys/fs/binfmt_misc/register
root=$2
shift 2
ip link set lo up 2> /dev/null || true
mount -t proc proc "$root/proc"
for node in null zero full random urandom; do : > "$root/dev/$node"; mount --bind "/dev/$node" "$root/dev/$node"; done
mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm"
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 "$@"
END
inside() { unshare --user --map-root-user --mount --net --pid --fork --kill-child sh "$work/enter.sh" "$qemu" "$work/root" "$@"; }
timed() {  # timed WHAT COMMAND...
  local start=$EPOCHREALTIME status=0
  "${@:2}" || status=$?
  awk -v a="$start" -v b="$EPOCHREALTIME" -v what="$1" 'BEGIN { printf "   %.1f s: %s\n", b - a, what }'
  return $status
}
refused() {  # refused CODE WORD COMMAND...
  local status=0
  "${@:3}" > refused.log 2>&1 || status=$?
  [ "$status" -eq "$1" ] && grep -q "$2" refused.log || { cat refused.log; fail "exit $status instead of $1 with '$2': ${*:3}"; }
}
cp -a "$parts/bare" root
mkdir -p root/proc root/dev root/tmp
[ "$(inside uname -m 2> why)" = aarch64 ] || skip "no binfmt_misc of its own for a user namespace: $(tail -1 why)"

echo "== outside: lock, pack, sign on $(uname -m)"
export SEALIFT_CACHE=$work/cache
unset UV_DEFAULT_INDEX UV_OFFLINE
python3 "$here/aarch64/make_wheels.py" "$work" $compiler
cat <<'END' |
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
static int prepared;
__attribute__((constructor)) static void prepare(void) { prepared = 1; }
__attribute__((destructor)) static void leave(void) { puts("and left"); }
int main(int count, char** words) {
  printf("zlib %s, %d, %s, %s\n", zlibVersion(), prepared, count > 1 ? words[1] : "-", getenv("LD_LIBRARY_PATH"));
}
END
  $compiler -isystem "$parts/static/usr/include" -x c - -x none -o hello "$parts/python/lib/aarch64-linux-gnu/libz.so.1" '-Wl,-rpath,$ORIGIN/../lib'
(cd "$work" && exec python3 -u -m http.server --bind 127.0.0.1 0) > server.log 2>&1 &
server=$!
for _ in $(seq 100); do port=$(sed -n 's/.*port \([0-9]*\).*/\1/p' server.log); [ -n "$port" ] && break; sleep 0.1; done
job() {  # job VERSION TARGET
  cat <<END
name = "arm"
version = $1
[target]
$2
system = "$parts/python"
[python]
version = "3.11"
interpreter = "$parts/python/usr"
default_index = "http://127.0.0.1:$port/simple"
requirements = ["armdemo", "nvidia-armcore"]
imports = ["armdemo", "ssl", "sqlite3", "ctypes"]
[[program]]
source = "hello"
into = "bin/hello"
[[program]]
source = "$arm/sealift-launch"
into = "bin/sealift-launch"
END
}
"$bin/sealift-pack" keygen keys > fingerprint 2> log
fingerprint=$(cat fingerprint)
pack() {  # pack VERSION TARGET
  job "$1" "$2" > job.toml
  timed "lock" "$bin/sealift-pack" lock job.toml --uv "$uv" --launcher "$arm/sealift-start" -o "arm-$1.lock.toml" 2>> log || { cat log; fail "lock"; }
  timed "create" "$bin/sealift-pack" create "arm-$1.lock.toml" --root keys/root.1.json --key keys/release.key -o out --installer "$arm/sealift-install" \
    2>> log || { cat log; fail "create"; }
}
pack 1 'arch = "aarch64"
glibc = "2.36"'
grep -q 'armdemo-1.0-cp311-cp311-manylinux_2_17_aarch64.whl' arm-1.lock.toml || fail "not the wheel for aarch64"
grep -q 'not rehearsed: a bundle for another architecture cannot be rehearsed here' log || fail "said nothing of the rehearsal"
pack 2 'profile = "kylin-v10-aarch64"
runtime = "carried"'
job 3 'arch = "riscv64"
glibc = "2.36"' > job.toml
refused 2 "x86_64 or aarch64" "$bin/sealift-pack" lock job.toml --uv "$uv"
job 3 'arch = "x86_64"
glibc = "2.36"' > job.toml
refused 8 "another architecture" "$bin/sealift-pack" lock job.toml --uv "$uv"
refused 8 "does not run on every target" "$bin/sealift-pack" create arm-1.lock.toml --root keys/root.1.json --key keys/release.key -o other \
  --installer "$bin/sealift-install"

echo "== inside: a bare arm64 root without a network, under $("$qemu" --version | sed -n '1s/ (.*//p')"
mkdir root/disc && mv out/arm-1 out/arm-2 root/disc
install=/disc/arm-1/sealift-install
inside $install probe > profile
grep -q '^arch = "aarch64"$' profile && grep -q '^glibc = "2.36"$' profile && ! grep -q '^cpu' profile || { cat profile; fail "probe"; }
volume=root/disc/arm-1/arm-1.vol001 middle=$(($(stat -c %s root/disc/arm-1/arm-1.vol001) / 2))
flip() { python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(int(sys.argv[2])); b = f.read(1)[0]; f.seek(-1, 1); f.write(bytes([b ^ 1]))' "$volume" "$middle"; }
flip
refused 5 arm-1.vol001 inside $install apply /disc/arm-1 --prefix /opt/env --fingerprint "$fingerprint"
[ ! -e root/opt/env/current ] || fail "a flipped bit became current"
flip
timed "verify ($(du -sm root/disc/arm-1 | cut -f1) MB)" inside $install verify /disc/arm-1 --fingerprint "$fingerprint" > said 2>&1 || { cat said; fail "verify"; }
tail -1 said
timed "apply, with its self-test" inside $install apply /disc/arm-1 --prefix /opt/env --fingerprint "$fingerprint" > said 2>&1 || { cat said; fail "apply"; }
generation=root/opt/env/generations/0001/generation.json
grep -o '[0-9]* of [0-9]* libraries and programs load' $generation || { cat $generation; fail "apply: the native files were not tried"; }
tail -1 said

cat > root/tmp/inside.py <<'END'
import ctypes, os, platform, sqlite3, ssl, subprocess, sys, zlib
import armdemo
assert platform.machine() == "aarch64", platform.machine()
assert armdemo.answer() == 42
root = os.path.realpath(sys.prefix)
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
assert root + "/lib/python3.11/site-packages/nvidia/armcore/lib/libarmcore.so.1" in maps, maps
libc = [path for path in maps if "/libc.so" in path]
assert all(path.startswith(root) == (sys.argv[1] == "carried") for path in libc) and libc, libc
assert not [name for name in os.environ if name.startswith("LD_")], os.environ
again = subprocess.run([sys.executable, "-c", "import armdemo; print(armdemo.answer())"], capture_output=True, text=True)
assert again.stdout == "42\n", again
print("Python", platform.python_version(), platform.machine(), ssl.OPENSSL_VERSION)
END
use() {
  inside /opt/env/current/bin/python3 /tmp/inside.py "$1" || fail "Python, $1 glibc"
  [ "$(inside /usr/bin/env LD_LIBRARY_PATH=/stray /opt/env/current/bin/hello 'a b')" = "zlib 1.2.13, 1, a b, /stray
and left" ] || fail "a program of the bundle, $1 glibc"
  inside /opt/env/current/bin/sealift-launch --nproc 2 --quiet /opt/env/current/bin/python3 -c 'import os; print("rank", os.environ["RANK"])' | sort > ranks
  [ "$(cat ranks)" = "rank 0
rank 1" ] || { cat ranks; fail "sealift-launch"; }
}
use own
# Of a process under qemu-user the kernel shows one program to doctor, which is qemu and none of the generation's.
only_qemu() { grep -qx '1 finding(s) in /opt/env' said && grep -q "^outside  $qemu\$" said || { cat said; fail "$1"; }; }
timed "doctor" inside $install doctor --prefix /opt/env > said 2>&1 || true
only_qemu doctor
grep "looked at" said && tail -1 said
module=root/opt/env/generations/0001/lib/python3.11/site-packages/armdemo/__init__.py
chmod u+w "$module" && printf x >> "$module"
inside $install doctor --prefix /opt/env > said 2>&1 && { cat said; fail "doctor of a changed file"; }
grep -q "^changed .*armdemo/__init__.py" said || { cat said; fail "doctor of a changed file"; }
inside $install doctor --prefix /opt/env --repair /disc/arm-1 > said 2>&1 || true
grep -q "^put right:" said || { cat said; fail "doctor --repair"; }
inside $install doctor --prefix /opt/env > said 2>&1 || true
only_qemu "doctor after --repair"

cp "$arm/sealift-repo" root/disc
cat > root/tmp/serve.sh <<'END'
/disc/sealift-repo serve /disc/arm-1 --trust /opt/env/trust --listen 127.0.0.1:8080 > /tmp/served 2>&1 &
exec /opt/env/current/bin/python3 - <<'PY'
import hashlib, re, time, urllib.request
def get(path):
    for _ in range(300):
        try:
            return urllib.request.urlopen("http://127.0.0.1:8080" + path, timeout=60).read()
        except ConnectionError as error:
            last = error
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            last = error
        time.sleep(0.1)
    raise last
page = get("/simple/armdemo/").decode()
link, digest = re.search(r'href="([^"#]*)#sha256=([0-9a-f]{64})"', page).groups()
wheel = get(urllib.parse.urljoin("/simple/armdemo/", link))
assert hashlib.sha256(wheel).hexdigest() == digest
print("sealift-repo served", link.rsplit("/", 1)[-1])
PY
END
timed "serve and fetch" inside /bin/sh /tmp/serve.sh || { cat root/tmp/served; fail "sealift-repo"; }

timed "apply with a carried glibc" inside /disc/arm-2/sealift-install apply /disc/arm-2 --prefix /opt/env --fingerprint "$fingerprint" > said 2>&1 ||
  { cat said; fail "apply of a carried runtime"; }
tail -1 said
use carried
refused 8 aarch64 "$bin/sealift-install" apply root/disc/arm-2 --prefix "$work/here" --fingerprint "$fingerprint"

echo "== outside: torch for such a target, from the real index"
cat > job.toml <<END
name = "torch"
version = 1
[target]
profile = "kylin-v10-aarch64"
runtime = "carried"
system = "$parts/python"
[python]
version = "3.11"
interpreter = "$parts/python/usr"
requirements = ["torch==2.11.0"]
imports = ["torch"]
END
timed "lock of torch" "$bin/sealift-pack" lock job.toml --uv "$uv" --launcher "$arm/sealift-start" > log 2>&1 || { cat log; fail "lock of torch"; }
grep -e "locked" -e "s: lock of torch" log
grep -q '"torch-2.11.0-cp311-cp311-manylinux_2_28_aarch64.whl"' torch.lock.toml || fail "no torch for aarch64"
grep -q '"nvidia_cublas-.*-manylinux_2_27_aarch64.whl"' torch.lock.toml || fail "no cuBLAS for aarch64 (sbsa)"
! grep '_x86_64.whl"' torch.lock.toml || fail "a wheel of x86-64"
[ -z "${SEALIFT_AARCH64_TORCH:-}" ] || {  # minutes, and 15 GB of disk
  timed "create of torch" "$bin/sealift-pack" create torch.lock.toml --root keys/root.1.json --key keys/release.key -o root/disc \
    --installer "$arm/sealift-install" > log 2>&1 || { cat log; fail "create of torch"; }
  tail -1 log
  # What the profile's system has, and a minimal Debian has not: torch's own programs are started with it.
  cp -a "$parts/python/usr/lib/aarch64-linux-gnu/"libstdc++.so.6* "$parts/python/lib/aarch64-linux-gnu/libgcc_s.so.1" root/usr/lib/aarch64-linux-gnu/
  timed "apply of torch" inside /disc/torch-1/sealift-install apply /disc/torch-1 --prefix /opt/torch --fingerprint "$fingerprint" > said 2>&1 ||
    { cat said; fail "apply of torch"; }
  tail -1 said
  grep -o '[0-9]* of [0-9]* libraries and programs load' root/opt/torch/generations/0001/generation.json
  timed "a gradient" inside /opt/torch/current/bin/python3 -c 'import torch
a = torch.arange(6.).reshape(2, 3).requires_grad_()
(a @ a.T).sum().backward()
assert a.grad.tolist() == [[6, 10, 14]] * 2, a.grad' 2> said || { cat said; fail "a gradient"; }
}
echo "an aarch64 target is served from x86-64"
