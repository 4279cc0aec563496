#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The .deb, the archive and the wheel in a root of another Debian: installed with what they ask for, a bundle packed, signed,
# carried to another folder and installed by them, and removed. Needs Debian's server; no index of Python packages.
#   debian_test.sh SOURCE PACKAGES SUITE
set -euo pipefail
source=$1 packages=$2 suite=$3 cache=$1/build/prerequisites
version=$(cat "$source/VERSION")
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" -eq 0 ] || { echo "left out: needs root for chroot"; exit 77; }
bare=$cache/bare-$suite.tar
[ "$suite" != bookworm ] || bare=$cache/bare-host.tar
[ -f "$bare" ] || {
  mmdebstrap --quiet --format=tar --variant=minbase "$suite" "$bare.partial"
  mv "$bare.partial" "$bare"
}
work=$(mktemp -d)
root=$work/root
cleanup() {
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf "$work"
}
trap cleanup EXIT
mkdir "$root" && tar -C "$root" --exclude='./dev/*' -xf "$bare"
for node in null:3 zero:5 random:8 urandom:9; do mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"; done
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }

echo "== $suite: apt installs the .deb and what it depends on"
mkdir "$root/packages"
cp "$packages"/*.deb "$packages"/*.tar.zst "$packages/sealift-$version"-*.whl "$root/packages"
inside apt-get -q update > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get update"; }
inside apt-get -q install -y --no-install-recommends "/packages/sealift_${version}_amd64.deb" bubblewrap patchelf python3 \
  python3-venv zstd > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get install"; }
inside dpkg --verify sealift
[ "$(inside sealift-pack --version)" = "sealift-pack $version" ] || fail "sealift-pack does not start"

# A wheel made here, so that no index is asked. uv, which Debian has not, is this machine's.
install -m 0755 "$(readlink -f "$cache/uv/bin/uv")" "$root/usr/local/bin/uv"
python=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
glibc=$(inside getconf GNU_LIBC_VERSION | sed 's/^glibc //')
cat > "$root/root/make.py" <<'END'
import base64, hashlib, json, struct, zipfile
files = {
    "hello.py": "print('hello from the carried module')\n",
    "hello-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello\nVersion: 1\n",
    "hello-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
files["hello-1.dist-info/RECORD"] = record + "hello-1.dist-info/RECORD,,\n"
with zipfile.ZipFile("/root/hello-1-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(zipfile.ZipInfo(path), text)
END
inside python3 /root/make.py
cat > "$root/root/job.toml" <<END
name = "first"
version = 1
[target]
arch = "x86_64"
glibc = "$glibc"
[python]
version = "$python"
requirements = ["./hello-1-py3-none-any.whl"]
imports = ["hello"]
END
# use PACK INSTALL: a bundle by these programs, from the key to the carried Python.
use() {
  inside sh -euc '
    pack=$1 install=$2
    cd /root && rm -rf keys out env disc first.lock.toml
    fingerprint=$("$pack" keygen keys)
    "$pack" lock job.toml
    "$pack" create first.lock.toml --root keys/root.1.json --key keys/release.key -o out --no-rehearsal
    cp -r out/first-1 disc
    cmp disc/sealift-install "$(readlink -f "$(command -v "$install")")"
    disc/sealift-install apply disc --prefix /root/env --fingerprint "$fingerprint"
    "$install" status --prefix /root/env
    env/current/bin/python -c "import hello"' sh "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "use of $1"; }
  grep -qx 'hello from the carried module' "$work/log" || { cat "$work/log" >&2; fail "the carried module was not run"; }
}
echo "== $suite: used, then removed"
use sealift-pack sealift-install
inside apt-get -q purge -y sealift > "$work/log" 2>&1 || { cat "$work/log" >&2; fail "apt-get purge"; }
find "$root/usr" "$root/etc" "$root/var/lib/dpkg/info" -name '*sealift*' | grep . && fail "the removed package left files"

echo "== $suite: the archive, unpacked and removed"
inside tar -C /opt -xf "/packages/sealift-$version-linux-x86_64.tar.zst"
use "/opt/sealift-$version-linux-x86_64/bin/sealift-pack" "/opt/sealift-$version-linux-x86_64/bin/sealift-install"
rm -r "$root/opt/sealift-$version-linux-x86_64"

echo "== $suite: the wheel, by pip, and removed"
inside python3 -m venv /root/venv
inside /root/venv/bin/pip install -q --no-index --no-deps /packages/sealift-"$version"-py3-none-manylinux_2_36_x86_64.whl
mv "$root/usr/local/bin/uv" "$root/root/venv/bin/uv"  # where pip puts it from an index
use /root/venv/bin/sealift-pack /root/venv/bin/sealift-install
inside /root/venv/bin/pip uninstall -q -y sealift
find "$root/root/venv" -name '*sealift*' | grep . && fail "the removed wheel left files"
echo "$suite: three packages installed, used and removed"
