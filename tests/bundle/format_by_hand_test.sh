#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# FORMAT.md's "By hand" section, run as it is printed there on a real bundle: the page must be true for stock tools.
#   format_by_hand_test.sh FORMAT.md MAKE_BUNDLE sha256|sm3
set -euo pipefail
format=$(realpath "$1")
make_bundle=$(realpath "$2")
. "$(dirname "$(realpath "$0")")/../support/flip_bit.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

payload_digest=$3
sed -n '/^## By hand/,$p' "$format" | sed -n '/^```sh/,/^```/p' | grep -v '^```' > page.sh
# Names that nobody else can have taken: no fixed ones in a folder that all may write.
if grep -nE '(/var)?/tmp/' page.sh; then echo "FORMAT.md's commands write a fixed name in /tmp"; exit 1; fi
grep -q 't=$(mktemp -d)' page.sh
sed "s|t=\$(mktemp -d)|t=$work|" page.sh > by_hand.sh
[ "$(wc -l < by_hand.sh)" -gt 20 ]
by_hand() { bash -euo pipefail by_hand.sh > output 2>&1; }

for algorithm in ecdsa-p256 ecdsa-p384 sm2 ed25519; do
  rm -rf NAME-VERSION
  fingerprint=$("$make_bundle" "$work/NAME-VERSION" $algorithm $payload_digest)
  by_hand || { cat output; echo "FORMAT.md's commands fail on a good bundle, $algorithm"; exit 1; }
  grep -q "^${fingerprint#sha256:} " output || { cat output; echo "the root's fingerprint was not printed"; exit 1; }
  [ "$(grep -c 'Signature Verified Successfully' output)" = 2 ]
done
digest=$(openssl dgst -r "-$payload_digest" NAME-VERSION/*.chunks | cut -d' ' -f1)
grep -q "\"chunk_list_digest\":\"$digest\"" manifest

# Every blob unpacked by stock tar has the digest that is its name, and a compressed one decodes with stock zstd.
mkdir blobs_out && cat NAME-VERSION/*.vol* | tar -C blobs_out -xf -
( cd blobs_out/blobs/sha256 && sha256sum -- * | awk '$1 != $2 { exit 1 }' )
stored=$(grep -o '"path":"programs/packed"[^}]*' manifest | sed 's/.*"stored_sha256":"\([0-9a-f]*\)".*/\1/')
plain=$(grep -o '"path":"programs/packed"[^}]*' manifest | sed 's/.*"sha256":"\([0-9a-f]*\)","size".*/\1/')
[ "$(zstd -dcq "blobs_out/blobs/sha256/$stored" | sha256sum | cut -d' ' -f1)" = "$plain" ]

# And they notice damage: another letter in the manifest, a key without the role, one byte of a volume.
cp NAME-VERSION/*.seal good.seal
payload=$(tail -n 1 good.seal | sed 's/.*"payload":"\([^"]*\)".*/\1/')
changed=$(echo "$payload" | base64 -d | sed 's/"version":1}/"version":2}/' | base64 -w0)
{ head -n 1 good.seal; tail -n 1 good.seal | sed "s|$payload|$changed|"; } > changed.seal
cmp -s good.seal changed.seal && { echo "the test changed nothing"; exit 1; }
cp changed.seal NAME-VERSION/*.seal
if by_hand; then echo "a changed manifest was not noticed"; exit 1; fi
"$make_bundle" "$work/other" > /dev/null
{ head -n 1 good.seal; tail -n 1 other/*.seal; } > changed.seal
cp changed.seal NAME-VERSION/*.seal
if by_hand; then echo "a key without the role was not noticed"; exit 1; fi
{ head -n 1 good.seal; head -n 1 good.seal; } > changed.seal
cp changed.seal NAME-VERSION/*.seal
if by_hand; then echo "a root in the manifest's place was not noticed"; exit 1; fi
grep -q 'this is no bundle' output
cp good.seal NAME-VERSION/*.seal
by_hand
flip_bit "$(ls NAME-VERSION/*.vol002)" 100000
if by_hand; then echo "a damaged volume was not noticed"; exit 1; fi
echo "stock tools read the bundle by following FORMAT.md, and notice damage"
