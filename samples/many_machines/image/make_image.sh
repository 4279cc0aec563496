#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a container image (an OCI image layout) of what is current in a prefix, at /opt/env/current: a layer with the
# environment, one for each model and data set, and one for the list of them, on a base that the site has, or on none. A
# registry has a layer that did not change already. No daemon, no registry, no root: sh, GNU tar, sha256sum, and the
# environment's own Python.
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
# What goes into which layer: files NNN with names, each ended by a zero byte, and `titles`, a line for each of them. A
# model's files are those entries that the packer calls files/ or catalogue/, and what lies where it unpacked one of
# trees/; what shares no folder with another goes together. The kernel mounts 127 layers at most, so what comes after the first 90 shares one. generation.json tells when
# and where this prefix was installed, and stays out of the image.
mkdir "$making/lists"
"$installer" receipt --prefix "$prefix" --json | "$prefix/current/bin/python3" -I -B -c '
import json, os, sys
root, lists = map(os.fsencode, sys.argv[1:])
owner, trees = {}, set()
for entry in json.load(sys.stdin)["entries"]:
    if entry["path"].startswith(("files/", "catalogue/")) and not entry["path"].startswith("files/apt/"):
        folders = entry["into"].split("/")[:-1]
        listed = entry["path"].startswith("catalogue/")
        group = "the list of repositories" if listed else "/".join(folders[:2]) or "files"
        owner[os.fsencode("./" + entry["into"])] = group
    if entry["path"].startswith("trees/"):
        trees.add(os.fsencode("./" + entry["path"][len("trees/"):-len(".tar")]))
def owner_of(path):
    while path not in owner and path not in trees and path != b".":
        path = path.rpartition(b"/")[0]
    return owner.get(path) or ("/".join(os.fsdecode(path).split("/")[1:3]) if path in trees else None)
shown = sorted(set(owner.values()) | set(map(owner_of, trees)))
title = {group: group if number < 90 else "other models and data" for number, group in enumerate(shown)}
layers = {"the environment": {b"."}}
for folder, folders, files in os.walk(root):
    below = b"." + folder[len(root):].rstrip(b"/")
    links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
    if not folders and not files:
        files = [b""]  # an empty folder
    for name in files + links:
        path = below + b"/" + name if name else below
        if path == b"./generation.json":
            continue
        group = owner_of(path)
        names = layers.setdefault(title[group] if group else "the environment", set())
        while path not in names and path != b".":
            names.add(path)
            path = path.rpartition(b"/")[0]
with open(os.path.join(lists, b"titles"), "w") as titles:
    for number, name in enumerate(["the environment"] + sorted(set(layers) - {"the environment"})):
        with open(os.path.join(lists, b"%03d" % number), "wb") as names:
            names.write(b"".join(path + b"\0" for path in sorted(layers[name])))
        print(json.dumps(name), file=titles)
' "$prefix/current" "$making/lists"
# Files that are one file in the store are two here, as they are in a prefix without hard links. A time of the bundle's would
# make other layers of the same files; 1980 is the earliest that a zip can hold.
number=0
while IFS= read -r title; do
  tar -C "$prefix/current/" --format=gnu --mtime=1980-01-01T00:00:00Z --owner=0 --group=0 --numeric-owner --hard-dereference \
    --transform="s,^\.,$at,SH" --no-recursion --null --verbatim-files-from \
    -T "$making/lists/$(printf %03d $number)" -cf "$making/layer"
  keep "$making/layer"
  layers="$layers$(descriptor layer.v1.tar),\"annotations\":{\"org.opencontainers.image.title\":$title}},"
  layer_digests="$layer_digests\"sha256:$digest\"," number=$((number + 1))
done <"$making/lists/titles"
layers=${layers%,} layer_digests=${layer_digests%,}
rm -r "$making/lists"

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
