#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A first success, small and without root: a tiny Python environment and a made model are packed and signed, carried to
# another folder, installed there without a network, opened, and refused once one bit is wrong.
#   samples/first_bundle.sh [OUT]     OUT gets everything (default first_bundle here; in a checkout build/first_bundle);
#                                     can be run again
# Installed programs are taken where they are (programs.sh). A checkout without them builds its own, and only what
# `cmake/prerequisites.sh tools` does then may ask for sudo, where packages are missing.
# air_gap.sh tells the same story with torch, a bare host and training.
set -euo pipefail
source "$(dirname "$0")/programs.sh"
started=$SECONDS

say() { printf '\n==> %3d s  %s\n' "$((SECONDS - started))" "$*"; }
# Runs a command that must end with this exit code.
expect() {
  local wanted=$1 status=0
  shift
  "$@" || status=$?
  [ "$status" = "$wanted" ] || { echo "first_bundle: '$1' ended with $status, and $wanted was expected" >&2; exit 1; }
}

if [ -n "$installed" ]; then
  out=$(realpath -m "${1:-first_bundle}") pack=$installed/sealift-pack
  say "prepare: the programs in $installed"
  needs python3=python3 bwrap=bubblewrap patchelf=patchelf
else
  cd "$samples/.."
  out=$(realpath -m "${1:-build/first_bundle}")
  tools=${SEALIFT_TOOLS_BUILD:-$PWD/build/tools}  # a build folder whose bin/ holds the tools
  pack=$tools/bin/sealift-pack
  say "prepare: a compiler, libraries, uv"
  cmake/prerequisites.sh tools
  if [ "$tools" = "$PWD/build/tools" ]; then
    say "build: packager, installer, starter"
    mkdir -p build
    [ -f "$tools/build.ninja" ] || cmake --preset tools -DSEALIFT_TESTS=OFF > build/tools.log || { cat build/tools.log; exit 1; }
    cmake --build "$tools" --target sealift-pack sealift-install sealift-start
  fi
  export PATH="$PWD/build/prerequisites/uv/bin:$PATH" SEALIFT_CACHE="$PWD/build/prerequisites/downloads"
fi

say "make: a model of one small layer, as safetensors"
rm -rf "$out"
mkdir -p "$out/tiny-model" "$out/isolated"
[ -z "$installed" ] || bring_uv "$out/uv"
python3 - "$out/tiny-model" <<'END'
import json, pathlib, struct, sys
folder = pathlib.Path(sys.argv[1])
(folder / "config.json").write_text(json.dumps({"model_type": "tiny", "hidden_size": 64}))
weights = struct.pack("<4096f", *(i / 4096 for i in range(4096)))
header = json.dumps({"layer.weight": {"dtype": "F32", "shape": [64, 64], "data_offsets": [0, len(weights)]}}).encode()
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + weights)
END
# For a machine like this one: its Python travels, and asks for its glibc.
cat > "$out/job.toml" <<END
name = "first"
version = 1
channel = "samples"
[target]
arch = "x86_64"
glibc = "$(getconf GNU_LIBC_VERSION | sed 's/^glibc //')"
[python]
version = "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
requirements = ["numpy==2.4.6", "safetensors==0.8.0"]
imports = ["numpy", "safetensors"]
[[model]]
source = "tiny-model"
END

say "connected side: make a key, lock, pack, sign, write the documents"
fingerprint=$("$pack" keygen "$out/keys")
"$pack" lock "$out/job.toml" -o "$out/first.lock.toml"
# Packed without a key, as on an account that builds; signed where the key is, which would be another one.
"$pack" create "$out/first.lock.toml" --root "$out/keys/root.1.json" --unsigned -o "$out"
"$pack" sign "$out/first-1" --fingerprint "$fingerprint" --key "$out/keys/release.key"
"$pack" rehearse "$out/first-1" --fingerprint "$fingerprint"
"$pack" documents "$out/first-1" --fingerprint "$fingerprint" --lock "$out/first.lock.toml" -o "$out/documents" > "$out/documents.txt"

say "carry: one folder, as a disc would"
cp -r "$out/first-1" "$out/isolated/disc"

# Without a network where namespaces may be made without root; the installer opens no socket in any case.
isolated=(unshare --user --map-root-user --net)
"${isolated[@]}" true 2>/dev/null || isolated=(env)
say "isolated side: verify, install, self-test${isolated[1]:+ without a network}"
cd "$out/isolated"
"${isolated[@]}" disc/sealift-install apply disc --prefix "$PWD/env" --fingerprint "$fingerprint"
"${isolated[@]}" env/current/bin/python - env/current/models/tiny-model/model.safetensors <<'END'
import sys
from safetensors.numpy import load_file
weight = load_file(sys.argv[1])["layer.weight"]
print("the carried Python opened the carried model:", weight.shape, "mean", round(float(weight.mean()), 4))
END

say "a disc goes bad: one bit of one volume"
cp -r disc bad_disc
python3 - bad_disc/first-1.vol001 <<'END'
import sys
with open(sys.argv[1], "r+b") as volume:
    volume.seek(1_000_000)
    byte = volume.read(1)[0]
    volume.seek(1_000_000)
    volume.write(bytes([byte ^ 1]))
END
expect 5 disc/sealift-install verify bad_disc --fingerprint "$fingerprint"
expect 5 disc/sealift-install apply bad_disc --prefix "$PWD/other" --fingerprint "$fingerprint"
[ ! -e other/current ]

say "done: the review page for whoever decides, from $(wc -l < "$out/documents.txt") documents (SBOM, provenance, licences)"
sed -n 1,16p "$out/documents/review.txt"
echo "..."
echo "the page:        $out/documents/review.html"
echo "the environment: $out/isolated/env/current/bin/python"
