#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# samples/many_machines/image: the image is accepted by skopeo and umoci, is the same wherever it is made, and runs in a root
# file system that holds nothing else and reaches no network.
# usage: image_test.sh BIN UV
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
bin=$1 uv=$2
for program in skopeo umoci; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program; 'cmake/prerequisites.sh tests' installs it" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] && unshare --net --mount true 2>/dev/null || { echo "SKIPPED: needs root and namespaces" >&2; exit 77; }
. "$tests/many_machines/small_bundle.sh"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $1" >&2; exit 1; }
make_image() { SEALIFT_INSTALL=$work/installer "$tests/../samples/many_machines/image/make_image.sh" "$@" >>image.txt 2>&1; }
apply() { ./installer apply "$1" --prefix "$2" --fingerprint "$(cat keys/root.fingerprint)" >/dev/null 2>&1; }
# runs ROOT COMMAND...: in that root, without a network
runs() { unshare --net --mount sh -ec 'mkdir -p "$0/proc"; mount -t proc proc "$0/proc"; exec chroot "$0" "$@"' "$@"; }

small_bundle "$bin" "$uv" 1
cp out/small-1/sealift-install installer
apply out/small-1 first || fail apply
make_image first image || { cat image.txt; fail "make_image.sh"; }

echo "skopeo and umoci accept it"
skopeo inspect oci:image:1 >inspect.json
grep -q '"org.opencontainers.image.title": "small"' inspect.json || fail "skopeo inspect"
identity=$(./installer status --prefix first --json | sed 's/.*"identity":"\([0-9a-f]*\)".*/\1/')
grep -q "\"sealift.identity\": \"sha256:$identity\"" inspect.json || fail "the image does not say which bundle it is of"
skopeo --insecure-policy copy -q oci:image:1 oci-archive:image.tar:1   # reads and checks every blob
umoci unpack --image image:1 unpacked >/dev/null

echo "it runs without a network, on nothing but itself"
[ "$(ls unpacked/rootfs)" = opt ] || fail "there is more in the image"
said=$(runs unpacked/rootfs /opt/env/current/bin/python3 -m where)
[ "$said" = "rank 0 of 1 on $(uname -n) in /opt/env/current" ] || fail "it says '$said'"
# Files, modes and links are the installed ones.
(cd first/current && find . ! -path ./generation.json -printf '%p %m %y %l\n' | sort) >installed
(cd unpacked/rootfs/opt/env/current && find . ! -name __pycache__ -printf '%p %m %y %l\n' | sort) >in-image
diff installed in-image >&2 || fail "the image differs from what is installed"

echo "another prefix, with another history: the same image, bit for bit"
small_bundle "$bin" "$uv" 2
apply out/small-1 second && apply out/small-2 second
make_image second image2
./installer switch 1 --prefix second >/dev/null
make_image second again
diff -r image again || fail "not the same image"
! cmp -s image/index.json image2/index.json || fail "version 2 is version 1"

echo "models and data are layers of their own, and a new model leaves the other layers as they are"
# titles IMAGE: digest and title of each layer. model NAME: a model with nothing but a name of its own.
titles() { skopeo inspect --raw "oci:$1" | python3 -c '
import json, sys
for layer in json.load(sys.stdin)["layers"]:
    print(layer["digest"], layer["annotations"]["org.opencontainers.image.title"])'; }
model() {
  mkdir -p "weights/$1"
  echo "{\"name\": \"$1\"}" >"weights/$1/config.json"
  printf '\002\000\000\000\000\000\000\000{}' >"weights/$1/model.safetensors"
}
model one && model two
mkdir -p texts && echo "a text" >texts/a.txt
job='[[data]]
source = "texts"
layout = "tree"
[[model]]
source = "weights/one"'
small_bundle "$bin" "$uv" 3 "$job"
small_bundle "$bin" "$uv" 4 "$job
[[model]]
source = \"weights/two\""
for version in 3 4; do
  apply out/small-$version third || fail "apply $version"
  make_image third layers$version || { cat image.txt; fail "make_image.sh"; }
done
titles layers3:3 >before
titles layers4:4 >after
cut -d' ' -f2- before >names
printf 'the environment\ndata/texts\nmodels/one\n' | diff - names >&2 || fail "layers of version 3"
grep -vxFf before after >new
[ "$(cut -d' ' -f2- new)" = models/two ] || { cat before after >&2; fail "more than the new model is new"; }
[ "$(grep -cxFf before after)" = 3 ] || fail "a layer of version 3 is another one in version 4"
umoci unpack --image layers4:4 with-models >/dev/null
(cd third/current && find . ! -path ./generation.json -printf '%p %m %y %l\n' | sort) >installed
(cd with-models/rootfs/opt/env/current && find . -printf '%p %m %y %l\n' | sort) >in-image
diff installed in-image >&2 || fail "the image with models differs from what is installed"
environment=$(sed -n '1s/sha256:\([0-9a-f]*\) .*/\1/p' after)
! tar -tf "layers4/blobs/sha256/$environment" | grep models || fail "a model is in the environment's layer"

echo "on a base of the site's"
mkdir -p base/etc base/opt/env
echo "the site's own" >base/etc/site
tar -C base -cf base.tar .
make_image first based base.tar
umoci unpack --image based:1 on-base >/dev/null
[ "$(cat on-base/rootfs/etc/site)" = "the site's own" ] || fail "the base is not there"
runs on-base/rootfs /opt/env/current/bin/python3 -m where >/dev/null || fail "it does not run on the base"
gzip -k base.tar
! make_image first never base.tar.gz || fail "a compressed base was taken"

echo "what is no longer what was signed becomes no image"
file=$(readlink -f first/current/lib/python3.11/site-packages/where.py)
chmod u+w "$file"
echo "print('changed')" >>"$file"
got=0
make_image first never || got=$?
[ $got = 5 ] && [ ! -e never ] && [ ! -e never.partial ] || fail "a changed file gave $got"
