#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what it needs, builds, and runs every test through ctest. `.ci/run` calls exactly this.
#   tests/run.sh [CTEST ARGUMENTS]    for example: tests/run.sh -L unit
# Afterwards `ctest --test-dir build/release` runs the tests again. Can be stopped anywhere and run again.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n==> %s\n' "$*"; }

say "prerequisites: Debian's packages, uv, torch"
cmake/prerequisites.sh tests

# In the fuzzers' build, so that what they share is compiled once; the preset `asan` has the same with gcc.
say "the readers of hostile bytes under AddressSanitizer and UBSan"
cmake --preset fuzz > build/fuzz.log || { cat build/fuzz.log; exit 1; }
cmake --build build/fuzz --target bundle_tests installer_tests hostile_tests
ctest --test-dir build/fuzz -j"$(nproc)" --output-on-failure --no-tests=error -R '^(bundle_tests|installer_tests|hostile_tests)$'

say "every parser under its fuzzer, six seconds each"
tests/fuzz/run.sh 6 . 1  # the same seed every time: what it finds was done by the change

say "build everything"
cmake --preset release -DSEALIFT_MERGE=ON -DSEALIFT_QUICK_COMPILER=clang++-19 > build/release.log || { cat build/release.log; exit 1; }
cmake --build build/release

# One more than there are processors, since many tests wait; those that compute on two ranks say so to ctest.
say "run every test"
exec ctest --test-dir build/release -j"$(($(nproc) + 1))" --output-on-failure --no-tests=error "$@"
