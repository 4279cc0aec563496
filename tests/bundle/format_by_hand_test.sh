#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FORMAT.md's "By hand" section, run as it is printed there on a real bundle: the page must be true for stock tools.
#   format_by_hand_test.sh FORMAT.md MAKE_BUNDLE sha256|sm3
set -euo pipefail
format=$(realpath "$1")
make_bundle=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

digest=$3
fingerprint=$("$make_bundle" "$work/NAME-VERSION" "$digest")
sed -n '/^## By hand/,$p' "$format" | sed -n '/^```sh/,/^```/p' | grep -v '^```' | sed "s|/tmp/|$work/|g" > by_hand.sh
[ "$(wc -l < by_hand.sh)" -gt 8 ]
by_hand() { bash -euo pipefail by_hand.sh > output 2>&1; }

by_hand || { cat output; echo "FORMAT.md's commands fail on a good bundle"; exit 1; }
grep -q "^${fingerprint#sha256:} " output || { cat output; echo "the key's fingerprint was not printed"; exit 1; }
grep -q 'Signature Verified Successfully' output
[ "$(grep -o '"digest":"[^"]*"' manifest)" = "\"digest\":\"$digest\"" ]
list=$(openssl dgst -r "-$digest" NAME-VERSION/*.chunks | cut -d' ' -f1)
grep -q "\"chunk_list_digest\":\"$list\"" manifest

# Every blob unpacked by stock tar has the digest that is its name, and a compressed one decodes with stock zstd.
mkdir blobs_out && cat NAME-VERSION/*.vol* | tar -C blobs_out -xf -
( cd blobs_out/blobs/sha256 && sha256sum -- * | awk '$1 != $2 { exit 1 }' )
stored=$(grep -o '"path":"programs/packed"[^}]*' manifest | sed 's/.*"stored_sha256":"\([0-9a-f]*\)".*/\1/')
plain=$(grep -o '"path":"programs/packed"[^}]*' manifest | sed 's/.*"sha256":"\([0-9a-f]*\)","size".*/\1/')
[ "$(zstd -dcq "blobs_out/blobs/sha256/$stored" | sha256sum | cut -d' ' -f1)" = "$plain" ]

# And they notice damage: one byte of a volume, one of the manifest.
printf x | dd of="$(ls NAME-VERSION/*.vol002)" bs=1 seek=100000 conv=notrunc status=none
if by_hand; then echo "a damaged volume was not noticed"; exit 1; fi
echo "stock tools read the bundle by following FORMAT.md, and notice damage"
