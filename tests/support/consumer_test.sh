#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A project outside this one: installs the headers, finds the package, builds and runs.
# usage: consumer_test.sh BUILD_DIR CONSUMER_DIR
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --component headers --prefix "$work/prefix" >/dev/null
cmake -G Ninja -S "$2" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build"
cd "$work"  # it may write where it runs
build/consumer
