#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# samples/many_machines/ansible with the real ansible-playbook, on two hosts that are two folders of this machine.
# usage: ansible_test.sh BIN UV
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
bin=$1 uv=$2
command -v ansible-playbook >/dev/null ||
  { echo "SKIPPED: no ansible-playbook; 'cmake/prerequisites.sh tests' installs it" >&2; exit 77; }
. "$tests/many_machines/small_bundle.sh"
. "$tests/support/flip_bit.sh"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

fail() { echo "FAILED: $1" >&2; cat play.txt >&2; exit 1; }
says() { grep -qF -- "$1" play.txt || fail "ansible-playbook does not say '$1'"; }
# play ARGUMENTS...: the sample's own playbook; its exit code
play() {
  ansible-playbook -i hosts.ini "$tests/../samples/many_machines/ansible/site.yml" -e sealift_bundle="$work/out/small-1/" \
    -e sealift_fingerprint="$(cat keys/root.fingerprint)" -e sealift_receipts="$work/receipts" "$@" >play.txt 2>&1
}
# host_changed HOST COUNT
host_changed() { grep -Eq "^$1 .*changed=$2 .*failed=0" play.txt || fail "$1 has not changed=$2"; }

small_bundle "$bin" "$uv" 1
export ANSIBLE_NOCOWS=1 ANSIBLE_NOCOLOR=1 ANSIBLE_HOME="$work/ansible" ANSIBLE_LOCAL_TEMP="$work/ansible" \
  ANSIBLE_REMOTE_TEMP="$work/ansible/remote"
cat >hosts.ini <<END
[training]
one sealift_prefix=$work/one/env
two sealift_prefix=$work/two/env
[training:vars]
ansible_connection=local
ansible_python_interpreter=/usr/bin/python3
END

echo "check mode says what would be done, and writes nothing"
play --check || fail "check mode"
says "would copy the bundle and install it"
[ ! -e one ] && [ ! -e two ] && [ ! -e receipts ] || fail "check mode wrote something"

echo "the first run copies, installs and fetches receipts"
play || fail "the first run"
for host in one two; do
  [ "$($host/env/current/bin/python3 -m where)" = "rank 0 of 1 on $(uname -n) in $work/$host/env/generations/0001" ] || fail $host
  cmp receipts/$host/0001-small-1.json $host/env/receipts/0001-small-1.json || fail "the receipt of $host"
  [ -f receipts/$host/0001-small-1.txt ] || fail "the page of $host"
  [ "$(cd $host/env.bundles/small-1 && echo *)" = "audit.sh sealift-install small-1.chunks small-1.seal" ] || fail "the landing of $host"
done

echo "the second run changes nothing, not even in check mode"
play || fail "the second run"
host_changed one 0
host_changed two 0
play --check || fail "check mode, again"
host_changed one 0

echo "a prefix on a share is planned, installed once, and seen by every host"
sed -i "s|sealift_prefix=[^ ]*|sealift_prefix=$work/share/env|" hosts.ini
share="-e sealift_copy=false -e sealift_shared=true"
mkdir share
# shellcheck disable=SC2086  # words
play $share --check || fail "check mode on the share"
says "would install generation 1 with at most"
[ ! -e share/env ] || fail "check mode made the prefix"
# shellcheck disable=SC2086
play $share || fail "the share"
host_changed one 2   # apply, and the receipt, which is not that of its own prefix
host_changed two 0
[ -x share/env/current/bin/python3 ] || fail "nothing was installed on the share"

echo "a damaged bundle fails on every host with what is wrong, and nothing is installed"
chmod u+w out/small-1/*.vol002
flip_bit "$(echo out/small-1/*.vol002)" 4000000
sed -i -E "s#^(one|two) sealift_prefix=[^ ]*#\1 sealift_prefix=$work/\1/other#" hosts.ini
! play || fail "a damaged bundle was installed"
for host in one two; do
  grep -q "^$host .*failed=1" play.txt || fail "$host did not fail"
  [ ! -e $host/other/current ] || fail "$host has it"
done
says "chunk 2 differs from what was signed"
