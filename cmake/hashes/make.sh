#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the requirements files of this folder anew, after a version in cmake/prerequisites.sh or tests/train/peers.txt was
# changed: what is asked for there and all that it needs, each file of each by its SHA-256. cmake/prerequisites.sh takes
# nothing from an index that is not in them.
set -eu
cd "$(dirname "$0")/../.."
eval "$(grep -E '^k[A-Z][A-Za-z]*=' cmake/prerequisites.sh)"

# compile NAME [OPTION] -- REQUIREMENTS...
compile() {
  name=$1 option=
  shift
  [ "$1" = -- ] || { option=$1; shift; }
  shift
  {
    echo "# Made by cmake/hashes/make.sh: $*"
    # shellcheck disable=SC2086  # one word, or none
    printf '%s\n' "$@" | build/prerequisites/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
      --no-header --no-annotate --no-emit-index-url $option -
  } > "cmake/hashes/$name.txt.new"
  mv "cmake/hashes/$name.txt.new" "cmake/hashes/$name.txt"
}

# shellcheck disable=SC2086  # lists of words
{
  compile uv -- "$kUv"
  compile isal_build -- $kIsalBuild
  compile torch -- "$kTorch"
  compile beside_torch -- $kReaders $kHeaders
  compile clients -- $kClients
  compile packers -- $kPackers
  for one in $kOlderClients; do compile "${one%%==*}-${one##*==}" -- "$one"; done
  compile peers --no-deps -- $(grep == tests/train/peers.txt)
}
