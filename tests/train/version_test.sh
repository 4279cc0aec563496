#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What --version of the training half's programs says, and what a build finds of its commit.
# usage: version_test.sh SOURCE_DIR VERSION PROGRAM...
set -eu
source=$1 version=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
for program; do
  said=$("$program" --version)
  [ "$(echo "$said" | sed -n 1p)" = "$(basename "$program") $version" ] || fail "$program does not say its version: $said"
  echo "$said" | sed -n 2p | grep -qE '^commit ([0-9a-f]{12,}(-changed)?|unknown)$' || fail "$program names no commit: $said"
  echo "$said" | sed -n 3p | grep -q '^LibTorch [0-9]' || fail "$program does not name its LibTorch: $said"
done

# commit_of FOLDER: what a build of it would say.
commit_of() {
  cmake -DSOURCE="$1" -DVERSION=1.2.3 -DIN="$source/trainer/version.cpp.in" -DOUT="$work/version.cpp" \
    -P "$source/cmake/commit.cmake"
  sed -n 's/.*\\ncommit \(.*\)".*/\1/p' "$work/version.cpp"
}
export GIT_CONFIG_GLOBAL=/dev/null GIT_CEILING_DIRECTORIES="$work"
mkdir "$work/checkout" "$work/archive"
[ "$(commit_of "$work/archive")" = unknown ] || fail "a folder outside of git has a commit"
git -C "$work/checkout" init -q
[ "$(commit_of "$work/checkout")" = unknown ] || fail "a checkout without a commit has one"
echo one >"$work/checkout/file"
git -C "$work/checkout" add file
git -C "$work/checkout" -c user.name=n -c user.email=e commit -qm one
head=$(git -C "$work/checkout" rev-parse --short=12 HEAD)
[ "$(commit_of "$work/checkout")" = "$head" ] || fail "the checkout's commit is not named"
touch -d 2001-01-01 "$work/version.cpp"
before=$(stat -c %Y "$work/version.cpp")
[ "$(commit_of "$work/checkout")" = "$head" ] && [ "$(stat -c %Y "$work/version.cpp")" = "$before" ] ||
  fail "the same commit was written again, so that each build would compile"
grep -q 'return "1.2.3' "$work/version.cpp" || fail "the version is not in it"
echo two >"$work/checkout/file"
[ "$(commit_of "$work/checkout")" = "$head-changed" ] || fail "files that differ from the commit are not told"
# An archive that somebody unpacked inside of their own checkout is not of their commit.
mkdir "$work/checkout/inner"
[ "$(commit_of "$work/checkout/inner")" = unknown ] || fail "a folder of another project has that project's commit"
