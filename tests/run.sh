#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what it needs, builds, and runs every test through ctest. `.ci/run` calls exactly this.
#   tests/run.sh                     everything: the readers under sanitizers, the fuzzers, all programs, all tests
#   tests/run.sh CTEST ARGUMENTS     the tests that these choose, for example -R packager: only what they need is built
# Afterwards `ctest --test-dir build/release` runs the tests again. Can be stopped anywhere and run again.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n==> %s\n' "$*"; }

mkdir -p build
: > build/minutes.tsv
took() { printf '%s\t%s\n' "$1" "$SECONDS" >> build/minutes.tsv; SECONDS=0; }  # since the step before

say "prerequisites: Debian's packages, uv, torch"
cmake/prerequisites.sh tests
took prerequisites

# What was compiled before is taken from ccache's folder, which is the account's. Nothing needs it.
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_PCH_EXTSUM=1 \
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-10G}
  ccache --zero-stats > /dev/null
fi

configure() {  # configure PRESET ARGUMENTS...
  cmake --preset "$@" > "build/$1.log" || { cat "build/$1.log"; exit 1; }
}
configure release -DSEALIFT_MERGE=ON -DSEALIFT_QUICK_COMPILER=clang++-19

if [ $# -gt 0 ]; then
  say "build what the chosen tests need"
  tests/needed.py build/release "$@" | xargs -r cmake --build build/release --target
  took "building"
else
  # In the fuzzers' build, so that what they share is compiled once; the preset `asan` has the same with gcc.
  say "the readers of hostile bytes under AddressSanitizer and UBSan"
  configure fuzz
  cmake --build build/fuzz --target bundle_tests installer_tests hostile_tests
  took "building the sanitized readers"
  ctest --test-dir build/fuzz -j"$(nproc)" --output-on-failure --no-tests=error -R '^(bundle_tests|installer_tests|hostile_tests)$'
  took "the sanitized readers"

  say "every parser under its fuzzer, six seconds each"
  tests/fuzz/run.sh 6 . 1  # the same seed every time: what it finds was done by the change
  took "fuzzers"

  say "build everything"
  cmake --build build/release
  took "building everything"
fi

# One more than there are processors, since many tests wait; tests that compute on two ranks say so to ctest.
say "run every test that was chosen"
ctest --test-dir build/release -j"$(($(nproc) + 1))" --output-on-failure --no-tests=error "$@" |& tests/minutes.py build/minutes.tsv
