#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SECURITY.md's ceremony, release and drill, and keys.md's rotation, run as they are printed there, on tiny bundles. A line that ends with
# "# refused: exit N" must end so; every other line must succeed.
#   security_drill_test.sh SECURITY.md KEYS.md BIN
set -euo pipefail
page=$(realpath "$1") keys_page=$(realpath "$2")
PATH=$(realpath "$3"):$PATH
. "$(dirname "$(realpath "$0")")/../support/hello_lock.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export SEALIFT_CACHE=$work/cache

# Two versions of a program that says its version.
hello_interpreter
for version in 1 2; do
  printf '#!/bin/sh\necho hello from version %s\n' $version > hello-$version
  hello_lock env $version prod hello-$version=bin/hello
done

refused() {  # refused CODE COMMAND...
  local status=0
  "${@:2}" > refused.log 2>&1 || status=$?
  [ "$status" = "$1" ] || { cat refused.log; echo "expected exit $1, got $status: ${*:2}"; exit 1; }
  head -1 refused.log
}
sed -n '/^```sh/,/^```/p' "$page" | grep -v '^```' | sed 's/^\(.*[^ ]\) *# refused: exit \([0-9]*\)$/refused \2 \1/' > drill.sh
[ "$(grep -c '^refused ' drill.sh)" = 3 ]
trap 'cat output; rm -rf "$work"' EXIT  # where a line of the page fails, the shell ends
set -x
. ./drill.sh > output 2>&1
set +x
trap 'rm -rf "$work"' EXIT

said=$(grep '^hello from version' output | tr '\n' ' ')
[ "$said" = "hello from version 1 hello from version 2 hello from version 1 " ] || { cat output; exit 1; }
grep -q 'error\[signature\]: 1 of 2 release signatures' output
grep -q 'error\[revoked\]: this bundle was withdrawn: signed by a key that was stolen' output
grep -q 'error\[revoked\]: this key may not sign bundles' output
grep -q '^release 2 of 2, site 1 of 1$' output
grep -A2 '  generation .*env-1 (generation 1)' output | grep -q 'this bundle was withdrawn'
grep -A1 '  bundle  out/env-1' output | grep -q 'withdrawn'
grep -A9 '^stays accepted' output | grep -q '  bundle  out/env-2'
[ "$(readlink prefix/current)" = generations/0002 ]
sealift-install trust show --prefix prefix | grep -q '^revoked key .*laptop stolen'

# The stolen key is enough to refuse a bundle that is not withdrawn by itself: the thief's, under the root that knew the
# key, with a reviewer and a desk who were fooled.
sealift-pack create env-2.lock.toml --root keys/root.1.json --key keys/builder.key -o thief > /dev/null 2>&1
sealift-pack sign thief/env-2 --fingerprint "$fingerprint" --key keys/reviewer.key --key keys/desk.key > /dev/null
refused 16 sealift-install verify thief/env-2 --prefix prefix
grep -q 'laptop stolen' refused.log

# docs/keys.md's rotation by one person, as it is printed there.
mkdir solo && cd solo && cp -r ../cache ../env-1.lock.toml ../hello-1 . && export SEALIFT_CACHE=$PWD/cache
sealift-pack keygen keys > /dev/null
sealift-pack create env-1.lock.toml --root keys/root.1.json --key keys/release.key -o out > /dev/null 2>&1
sealift-install apply out/env-1 --prefix prefix --fingerprint "$(cat keys/root.fingerprint)" > /dev/null 2>&1
sed -n '/^sealift-pack keygen keys --name second/,/^```/p' "$keys_page" | grep -v '^```' | sed 's#/opt/env#prefix#' > rotate.sh
[ "$(wc -l < rotate.sh)" -gt 15 ]
set -x
. ./rotate.sh > output 2>&1 || { cat output; exit 1; }
set +x
sealift-install verify out/env-1 --prefix prefix > /dev/null
sealift-install trust show --prefix prefix | grep -q '^revoked key .*laptop stolen'
refused 16 sealift-pack sign out/env-1 --fingerprint "$(cat keys/root.fingerprint)" --root keys/root.1.json \
  --root keys/root.2.json --key keys/release.key
echo "the ceremony, the release and the drill of SECURITY.md, and the rotation of keys.md do what the pages say"
