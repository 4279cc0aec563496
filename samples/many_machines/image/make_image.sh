#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a container image (an OCI image layout) of what is current in a prefix: one layer with the environment at
# /opt/env/current, on a base that the site has, or on none. No daemon, no registry, no root: sh, GNU tar, sha256sum, and
# the environment's own Python.
# The same bundle gives the same image, byte for byte, on every machine and in every prefix.
#   make_image.sh PREFIX OUT [BASE.tar]
# OUT: a new folder. BASE.tar: a root file system as an uncompressed tar, the image's first layer as it is. Without one the
# image holds nothing but the environment, which then has to bring its glibc: runtime = "carried" in the job.
# SEALIFT_INSTALL: the installer; default: sealift-install in PATH.
set -eu
prefix=$1 out=$2 base=${3:-}
installer=${SEALIFT_INSTALL:-sealift-install}
at=opt/env/current

fail() { echo "$1" >&2; exit 1; }
[ ! -e "$out" ] || fail "$out is there already"
if [ -n "$base" ]; then
  [ "$(dd if="$base" bs=1 skip=257 count=5 2>/dev/null)" = ustar ] || fail "$base is no uncompressed tar"
fi

# Every file is hashed against what was signed; who finds something ends here, with doctor's own code.
"$installer" doctor --prefix "$prefix" >&2
# shellcheck disable=SC2046  # five words: none of these values can hold a space
set -- $("$installer" receipt --prefix "$prefix" --json | "$prefix/current/bin/python3" -I -B -c '
import json, sys
receipt = json.load(sys.stdin)
print(*(receipt[key] for key in ("name", "version", "created", "identity", "interpreter")))')
name=$1 version=$2 created=$3 identity=$4 python=$5
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "what does OCI call $(uname -m)?" ;;
esac

making=$out.partial
rm -rf "$making"
mkdir -p "$making/blobs/sha256"
trap 'rm -rf "$making"' EXIT

# Each blob FILE gets its digest for a name; what is left in `digest` and `size` is what a descriptor says of it.
keep() {
  digest=$(sha256sum "$1" | cut -c1-64)
  size=$(stat -c %s "$1")
  mv "$1" "$making/blobs/sha256/$digest"
}
descriptor() { printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s' "$1" "$digest" "$size"; }

layers= layer_digests=
if [ -n "$base" ]; then
  cp "$base" "$making/layer"
  keep "$making/layer"
  layers="$(descriptor layer.v1.tar)}," layer_digests="\"sha256:$digest\","
fi
# generation.json tells when and where this prefix was installed, which is no part of the image. Files that are one file in
# the store are two here, as they are in a prefix without hard links.
tar -C "$prefix/current/" --sort=name --format=gnu --mtime="$created" --owner=0 --group=0 --numeric-owner \
  --hard-dereference --exclude=./generation.json --transform="s,^\.,$at,SH" -cf "$making/layer" .
keep "$making/layer"
layers="$layers$(descriptor layer.v1.tar)}" layer_digests="$layer_digests\"sha256:$digest\""

# What the environment sets, but for the user's own folders, which sealift-start knows when a program starts.
variables=
if [ -f "$prefix/current/share/sealift/environment" ]; then
  variables=$(sed -e '/\${CACHE}/d' -e "s,\${PREFIX},/$at,g" -e 's/[\\"]/\\&/g' -e 's/.*/,"&"/' "$prefix/current/share/sealift/environment" | tr -d '\n')
fi

cat >"$making/config" <<END
{"created":"$created","architecture":"$arch","os":"linux","config":{\
"Env":["PATH=/$at/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","PYTHONNOUSERSITE=1"$variables],\
"Cmd":["/$at/$python"],"Labels":{"org.opencontainers.image.title":"$name","org.opencontainers.image.version":"$version",\
"sealift.identity":"sha256:$identity"}},"rootfs":{"type":"layers","diff_ids":[$layer_digests]}}
END
keep "$making/config"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[%s]}' \
  "$(descriptor config.v1+json)" "$layers" >"$making/manifest"
keep "$making/manifest"
printf '{"schemaVersion":2,"manifests":[%s,"annotations":{"org.opencontainers.image.ref.name":"%s"}}]}' \
  "$(descriptor manifest.v1+json)" "$version" >"$making/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$making/oci-layout"
mv "$making" "$out"
echo "$out: $name version $version, sha256:$digest"
