#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What docs/releasing.md says of signing a release and of checking the first one, command for command as it stands there:
# it holds for what was signed, and for nothing else.
#   signature_test.sh BUILD/bin SOURCE
set -euo pipefail
bin=$1 page=$2/docs/releasing.md
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v openssl > /dev/null || { echo "left out: needs openssl"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# commands HEADING: what stands in the sh blocks below this heading.
commands() { awk -v heading="## $1" '/^## /{ here = $0 == heading } /^```/{ block = here && $0 == "```sh"; next } block' "$page"; }
commands 'Sign it' > sign.sh
commands 'Check the first one' > check.sh
[ "$(wc -l < sign.sh)" = 2 ] && [ "$(wc -l < check.sh)" = 3 ] || fail "the page has other commands: $(cat sign.sh check.sh)"

mkdir release && cd release
echo archive > sealift-1.tar.zst && echo wheel > sealift-1.whl
sha256sum sealift-1.* > SHA256SUMS
id=$(PATH=$bin:$PATH bash -euo pipefail ../sign.sh)
case $id in sha256:*) ;; *) fail "keygen prints no id: $id" ;; esac
mv keys/packages.pub . && mv keys ../elsewhere
rm sealift-1.whl  # a site has what it wants of them

good() { (cd "$1" && bash -euo pipefail ../check.sh) > said 2>&1; }
good . || fail "what was signed is refused: $(cat said)"
[ "$(head -1 said)" = "${id#sha256:}  -" ] || fail "the key's id is another one than keygen printed, $id: $(cat said)"
grep -qx 'sealift-1.tar.zst: OK' said || fail "the package was not checked: $(cat said)"
cd ..
# bad WORDS COMMAND: after COMMAND in a copy, the page's commands end with an error, and say WORDS.
bad() {
  rm -rf tried && cp -r release tried && (cd tried && bash -euo pipefail -c "$2")
  ! good tried || fail "not refused after: $2"
  grep -q "$1" said || fail "other words than '$1': $(cat said)"
}
bad 'sealift-1.tar.zst: FAILED' 'echo another > sealift-1.tar.zst'
bad 'Signature Verification Failure' 'echo another > sealift-1.tar.zst && sha256sum sealift-1.tar.zst > SHA256SUMS'
bad 'Signature Verification Failure' 'printf x >> SHA256SUMS'
bad 'no file was verified' 'mv sealift-1.tar.zst another.tar.zst'
# Another signer's release is whole in itself: that its key is not the right one, the id alone shows.
rm -rf tried && cp -r release tried && cd tried
other=$(PATH=$bin:$PATH bash -euo pipefail ../sign.sh) && cp keys/packages.pub . && rm -r keys
cd .. && good tried || fail "another signer's release is not whole: $(cat said)"
[ "$(head -1 said)" = "${other#sha256:}  -" ] && [ "$other" != "$id" ] || fail "another signer's key has the same id"
echo "signed and checked as the page says; refused where a byte, a name or the signature is another one"
