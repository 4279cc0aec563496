#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Other versions of Python than the packing machine's own: resolved for, built for, packed, rehearsed.
#   SEALIFT_PYTHONS="FOLDER…" tests/end_to_end/pythons_test.sh [OUT [BIN]]     OUT build/pythons, BIN build/tools/bin
# A folder holds bin and lib of one version. Without the variable: those of pyenv. By hand: `ctest -C slow -R pythons`.
set -euo pipefail
project=$(realpath "$(dirname "$0")/../..")
out=$(realpath -m "${1:-$project/build/pythons}")
bin=$(realpath -m "${2:-$project/build/tools/bin}")
export PATH=/usr/bin:$project/build/prerequisites/uv/bin:$PATH
read -ra pythons <<< "${SEALIFT_PYTHONS:-$(ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.{9,[1-9][0-9]}.* 2> /dev/null | tr '\n' ' ')}"
[ "${#pythons[@]}" -gt 0 ] || { echo "no other Python is here: name one with SEALIFT_PYTHONS; not run"; exit 77; }

rm -rf "$out" && mkdir -p "$out"
trap 'rm -rf "$out/bundle" "$out/cache"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
"$bin/sealift-pack" keygen "$out/keys" > /dev/null 2>&1
for python in "${pythons[@]}"; do
  minor=$(basename "$(ls -d "$python"/lib/python3.*[0-9] | head -1)") tag=cp${minor//[^0-9]/}
  echo "== $minor of $python"
  cat > "$out/$minor.toml" << EOF
name = "$minor"
version = 1
[target]
profile = "debian-12"
[python]
version = "${minor#python}"
interpreter = "$python"
requirements = ["numpy", "crcmod==1.7", "tomli; python_version < '3.11'"]
imports = ["numpy", "crcmod._crcfunext", "ssl", "sqlite3", "ctypes"]
EOF
  "$bin/sealift-pack" lock "$out/$minor.toml" --cache "$out/cache" --launcher "$bin/sealift-start"
  lock=$out/$minor.lock.toml
  ! grep -oE 'numpy-[^"]*\.whl' "$lock" | grep -v -- "-$tag-$tag-" || fail "a wheel for another Python"
  grep -q "\"crcmod-1.7-$tag-$tag-linux_x86_64.whl\"" "$lock" || fail "crcmod was not built for $tag"
  [ "$(grep -c '"tomli-' "$lock")" = "$([ "${tag#cp3}" -lt 11 ] && echo 1 || echo 0)" ] || fail "a marker of another Python"
  # `create` ends with the rehearsal, whose self-test imports all of it.
  "$bin/sealift-pack" create "$lock" --root "$out/keys/root.1.json" --key "$out/keys/release.key" -o "$out/bundle" --cache "$out/cache" \
    --installer "$bin/sealift-install" 2>&1 | tee "$out/create.log"
  grep -q '^rehearsed: ' "$out/create.log" || fail "no rehearsal"
done
echo "packed and rehearsed: ${pythons[*]}"
