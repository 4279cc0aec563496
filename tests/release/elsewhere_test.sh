#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What two people of docs/releasing.md compare: the programs are compiled once more from nothing, in a folder of another
# name and depth, by another umask, time zone and number of jobs, and without a compiler cache. They must have the bytes of
# this build's, the trainer's too where it is built. That the same programs make the same packages is packages_test.sh's.
# Eight processor minutes, and twenty with the trainer.
#   elsewhere_test.sh BUILD/bin SOURCE
set -euo pipefail
build=$(dirname "$1") source=$2 programs='sealift-install sealift-launch sealift-repo sealift-start sealift-pack'
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v git > /dev/null || { echo "left out: needs git"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/of-another-person/in-a-longer-folder/sealift
mkdir -p "$tree/build"
(cd "$source" && git ls-files -z | tar --null -cf - -T -) | tar -C "$tree" -xf -
ln -s "$(realpath "$source/build/prerequisites")" "$tree/build/prerequisites"
[ ! -x "$build/bin/sealift-train" ] || programs="$programs sealift-train sealift-verify"
settings=()
for name in CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_RELEASE SEALIFT_MERGE SEALIFT_PRECOMPILE; do
  settings+=("-D$name=$(sed -n "s/^$name:[A-Z]*=//p" "$build/CMakeCache.txt")")
done
# By its own path, since the compiler names a system header by its real one, which is then what is taken out of messages.
torch=$(sed -n 's/^SEALIFT_TORCH:[A-Z]*=//p' "$build/CMakeCache.txt")
[ -z "$torch" ] || settings+=("-DSEALIFT_TORCH=$(realpath "$torch")")
unset CMAKE_CXX_COMPILER_LAUNCHER CXXFLAGS LDFLAGS SOURCE_DATE_EPOCH
(
  umask 077
  export TZ=Asia/Shanghai LC_ALL=C.UTF-8 USER=another HOME=$work
  cd "$tree"
  cmake -S . -B build/two -G Ninja "${settings[@]}" -DSEALIFT_TESTS=OFF
  # shellcheck disable=SC2086  # a list of words
  cmake --build build/two -j1 --target $programs
) > "$work/log" 2>&1 || { tail -50 "$work/log" >&2; fail "it does not build there"; }
for program in $programs; do
  cmp "$build/bin/$program" "$tree/build/two/bin/$program" || fail "compiled elsewhere, $program has other bytes"
done
echo "compiled elsewhere, ${programs// /, } have the same bytes"
