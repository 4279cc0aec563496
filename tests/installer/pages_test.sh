#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs what pages for a site's people print, as it is printed there: each block of sh of a page, in its order, on two
# tiny bundles. A line that ends with "# refused: exit N" must end so, every other line must succeed, and what follows
# "#> " must be in the output of the line before it.
#   pages_test.sh BIN PAGE.md...
set -euo pipefail
bin=$(realpath "$1")
shift
pages=$(realpath "$@")
. "$(dirname "$(realpath "$0")")/../support/hello_lock.sh"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
export PATH=$bin:$PATH SEALIFT_CACHE=$work/cache HOME=$work/home
mkdir -p home media

# Two versions of a program that says its version.
hello_interpreter
sealift-pack keygen keys > keygen.log 2>&1
for version in 1 2; do
  printf '#!/bin/sh\necho hello from version %s\n' $version > hello-$version
  hello_lock env $version prod hello-$version=bin/hello
  sealift-pack create env-$version.lock.toml --root keys/root.1.json --key keys/release.key -o media > create.log 2>&1 ||
    { cat create.log; exit 1; }
done

# The page's addresses are of a site; here they are folders of this test.
as_run() {
  sed -n '/^```sh/,/^```/p' "$1" | grep -v '^```' |
    sed "s#/opt/env#$PWD/prefix#g; s#/media/disc#$work/media#g; s#FINGERPRINT#$(cat "$work/keys/root.fingerprint")#g"
}
fail() { cat output; echo "$page: $1"; exit 1; }
for page in $pages; do
  name=$(basename "$page" .md)
  mkdir "$name"
  pushd "$name" > /dev/null
  lines=0
  while IFS= read -r line <&3; do
    case $line in
      '#> '*) grep -qF -- "${line#'#> '}" output || fail "'$command' does not say '${line#'#> '}'" ;;
      '' | '#'*) ;;
      *)
        command=${line%%  #*} want=0 status=0
        [[ $line =~ '# refused: exit '([0-9]+) ]] && want=${BASH_REMATCH[1]}
        bash -c "$command" > output 2>&1 || status=$?
        [ "$status" = "$want" ] || fail "'$command' ended with $status, not $want"
        lines=$((lines + 1))
        ;;
    esac
  done 3< <(as_run "$page")
  [ "$lines" -ge 5 ] || fail "only $lines commands were found"
  echo "$name: $lines commands do what the page says"
  chmod -R u+w . && popd > /dev/null
done
