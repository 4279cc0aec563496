#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# [sdk] in earnest: the installed headers are locked, packed and installed; a user's program is then built inside, without
# a network, by find_package alone against that prefix, and trains a step. The environment's torch is the build's, linked
# into the generation, since a bundle of it would be 2 GB.
#   sdk_test.sh BIN BUILD TORCH CONSUMER
set -euo pipefail
bin=$(realpath "$1") build=$(realpath "$2") torch=$(realpath "$3") consumer=$(realpath "$4")
[ -x /usr/bin/python3.11 ] && command -v patchelf > /dev/null || { echo "skipped: needs python3.11 and patchelf"; exit 77; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export SEALIFT_CACHE=$work/cache

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
cmake --install "$build" --component headers --prefix "$work/installed" > /dev/null
# A wheel, and a uv that always answers with it.
python3 - << 'END'
import base64, hashlib, zipfile
files = {"demo/__init__.py": "ANSWER = 42\n",
         "demo-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
         "demo-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
record = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in files.items())
with zipfile.ZipFile("demo-1.0-py3-none-any.whl", "w") as archive:
    for name, text in {**files, "demo-1.0.dist-info/RECORD": record + "demo-1.0.dist-info/RECORD,,\n"}.items():
        archive.writestr(name, text)
END
cat > uv << END
#!/bin/sh
while [ "\$1" != -o ]; do shift; done
cat > "\$2" << LOCK
lock-version = "1.0"
[[packages]]
name = "demo"
version = "1.0"
archive = { path = "demo-1.0-py3-none-any.whl", hashes = { sha256 = "$(sha256sum < demo-1.0-py3-none-any.whl | cut -d' ' -f1)" } }
LOCK
END
chmod +x uv
cat > job.toml << END
name = "core"
version = 1
[target]
arch = "x86_64"
glibc = "2.36"
[python]
version = "3.11"
interpreter = "/usr/bin/python3.11"
requirements = ["demo"]
[sdk]
from = "installed"
END
"$bin/sealift-pack" keygen keys > fingerprint
"$bin/sealift-pack" lock job.toml --uv "$work/uv"
"$bin/sealift-pack" create core.lock.toml --root keys/root.1.json --key keys/release.key -o out --no-rehearsal
"$bin/sealift-install" apply out/core-1 --prefix "$work/prefix" --fingerprint "$(cat fingerprint)"
rm -rf out cache installed

current=$work/prefix/current
grep -q Apache "$current/share/doc/sealift/LICENSE" || fail "the licence was left behind"
! grep -rlF -e "$build" -e "$torch" "$current/lib/cmake" "$current/include" || fail "a file names the machine that built it"
[ ! -e "$current/include/sealift/bundle" ] || fail "the bundle half travels, too"
site=$current/lib/python3.11/site-packages
chmod u+w "$site"
ln -s "$torch" "$site/torch"
[ ! -d "$torch/../nvidia" ] || ln -s "$(realpath "$torch/../nvidia")" "$site/nvidia"

isolated=(unshare --net)
"${isolated[@]}" true 2> /dev/null || isolated=(unshare --user --map-root-user --net)
"${isolated[@]}" true 2> /dev/null || isolated=(env)
"${isolated[@]}" cmake -G Ninja -S "$consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$current" -DCMAKE_BUILD_TYPE=Debug > log || { cat log; exit 1; }
grep -q "^sealift_DIR:PATH=$work/prefix/" build/CMakeCache.txt || fail "another package was found"
"${isolated[@]}" cmake --build build > log || { cat log; exit 1; }
"${isolated[@]}" env -u LD_LIBRARY_PATH build/consumer
