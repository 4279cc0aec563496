#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A carried runtime on a real system with an older glibc: Debian 11, 2.31. What needs Debian 12's glibc is refused for it by name;
# with `runtime = "carried"` it is packed, installed there without a network, and runs with no glibc but the carried one,
# while what it starts has the system's own. Needs the package index, Debian's archive, mmdebstrap and root; by label `network`.
#   older_system_test.sh BIN UV [ROOT_OF_AN_OLDER_SYSTEM]
set -euo pipefail
bin=$(realpath "$1") uv=$(realpath "$2") system=${3:+$(realpath "$3")}
[ "$(id -u)" = 0 ] && { [ -n "$system" ] || command -v mmdebstrap > /dev/null; } || { echo "skipped: needs root and mmdebstrap"; exit 77; }
unshare --net --mount true 2> /dev/null || { echo "skipped: no mount namespace can be made here (a chroot?)"; exit 77; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export SEALIFT_CACHE=$work/cache
[ -n "$system" ] || { system=$work/system; mmdebstrap --quiet --variant=minbase bullseye "$system"; }
old=$(chroot "$system" ldd --version | sed -n '1s/.* //p')
new=$(ldd --version | sed -n '1s/.* //p')
[ "$old" != "$new" ]

cat > job.toml <<END
name = "older"
version = 1
[target]
arch = "x86_64"
glibc = "$old"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["numpy"]
imports = ["numpy", "ssl", "sqlite3", "ctypes"]
[[program]]
source = "/usr/bin/openssl"
into = "bin/openssl"
END
"$bin/sealift-pack" keygen keys > fingerprint
if "$bin/sealift-pack" lock job.toml --uv "$uv" 2> refusal; then echo "not refused"; exit 1; fi
grep -q "libexec/python3.11\|bin/python3.11" refusal
grep -q 'runtime = "carried"' refusal

sed -i "s/^glibc = .*/&\nruntime = \"carried\"/" job.toml
"$bin/sealift-pack" lock job.toml --uv "$uv"
"$bin/sealift-pack" create older.lock.toml --root keys/root.1.json --key keys/release.key -o out
sh out/older-1/audit.sh "$(cat fingerprint)" out/older-1
"$bin/sealift-pack" inspect out/older-1 | grep "glibc $new is carried"
"$bin/sealift-pack" rehearse out/older-1 --fingerprint "$(cat fingerprint)" --system "$system"

cat > inside.py <<'END'
import ctypes, multiprocessing, os, subprocess, sys
import numpy

def libraries():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if ".so" in line}

def in_child(queue):
    numpy.linalg.inv(numpy.eye(3))
    queue.put((sys.executable, libraries()))

def only_carried(found):
    here = os.path.realpath(sys.prefix)
    strangers = [path for path in found if not path.startswith(here)]
    assert not strangers, strangers
    assert here + "/lib/runtime/libc.so.6" in found, found

if __name__ == "__main__":
    ctypes.CDLL("libstdc++.so.6")
    only_carried(libraries())
    assert os.confstr("CS_GNU_LIBC_VERSION") == "glibc NEW", os.confstr("CS_GNU_LIBC_VERSION")
    assert sys.executable == "/mnt/site/generations/0001/bin/python3", sys.executable
    assert os.readlink("/proc/self/exe") == os.path.realpath("/mnt/site/current/bin/python3")
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    executable, found = queue.get()
    child.join()
    assert executable == sys.executable and child.exitcode == 0
    only_carried(found)
    run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert run("ldd", "--version").split("\n")[0].endswith("OLD")
    print(run("/bin/ls", "--version").split("\n")[0])
    mapped = run("/bin/cat", "/proc/self/maps")
    assert "libc" in mapped and "/mnt/site" not in mapped, mapped
    assert not [name for name in os.environ if name.startswith("LD_")]
    print(run("openssl", "version"))
    run(sys.executable, "-m", "venv", "--without-pip", "/mnt/venv")
    assert run("/mnt/venv/bin/python", "-c", "import sys; print(sys.prefix)") == "/mnt/venv\n"
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 42
    print("numpy", numpy.__version__, "with glibc NEW on glibc OLD")
END
sed -i "s/NEW/$new/; s/OLD/$old/" inside.py
# A driver as distributions have it: in a folder that only ld.so.cache knows.
echo 'int cuInit(unsigned flags) { return 42 + flags; }' |
  cc -shared -fPIC -nostdlib -Wl,-soname,libcuda.so.1 -x c - -o libcuda.so.1
cat > enter.sh <<'END'
set -e
mount -t tmpfs tmpfs "$1/mnt"
mount -t tmpfs tmpfs "$1/etc/ld.so.conf.d"
mount -t proc proc "$1/proc"
mkdir "$1/mnt/driver" "$1/mnt/bundle"
cp libcuda.so.1 "$1/mnt/driver"
cp inside.py "$1/mnt"
mount --bind out/older-1 "$1/mnt/bundle"
echo /mnt/driver > "$1/etc/ld.so.conf.d/driver.conf"
mount --bind /dev "$1/dev"
chroot "$1" ldconfig -C /mnt/cache && mount --bind "$1/mnt/cache" "$1/etc/ld.so.cache"
chroot "$1" env -i PATH=/usr/bin:/bin /mnt/bundle/sealift-install apply /mnt/bundle --prefix /mnt/site --fingerprint "$2"
chroot "$1" env -i PATH=/mnt/site/current/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/mnt python3 /mnt/inside.py
END
unshare --net --mount sh enter.sh "$system" "$(cat fingerprint)"
echo "an environment of glibc $new runs on glibc $old"
