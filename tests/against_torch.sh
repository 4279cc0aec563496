#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the training core against another torch than the one in cmake/prerequisites.sh and runs its tests there.
# By hand, before a new torch is supported: it downloads gigabytes and builds for minutes, so tests/run.sh leaves it out.
# All errors are wanted at once, so the build goes on after one; the exit status is 0 when all compiled and all passed.
#   tests/against_torch.sh [VERSION] [CTEST ARGUMENTS]    VERSION: 2.15.0, or newest (the default): asks the index
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n==> %s\n' "$*"; }

where=build/prerequisites
export UV_CACHE_DIR=$PWD/$where/uv-cache-against UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1
cmake/prerequisites.sh build
uv=$where/uv/bin/uv

version=${1:-newest}
shift $(($# > 0))
if [ "$version" = newest ]; then
  version=$(echo torch | "$uv" pip compile -q --no-deps --no-header --no-annotate --python-version 3.11 - | sed 's/^torch==//')
fi

say "torch $version"
torch=$where/torch-$version
if [ "$(cat "$torch.stamp" 2>/dev/null)" != "torch==$version" ]; then
  rm -rf "$torch"
  "$uv" venv -q --python 3.11 "$torch"
  "$uv" pip install -q --python "$torch/bin/python" "torch==$version"
  rm -rf "$UV_CACHE_DIR"
  echo "torch==$version" > "$torch.stamp"
fi

say "build the training core, its tests, the trainer and the samples against it"
build=build/against-torch-$version
cmake --preset release -B "$build" -DSEALIFT_TORCH="$PWD/$torch/lib/python3.11/site-packages/torch" > "$build.log" \
  || { cat "$build.log"; exit 1; }
compiled=true
cmake --build "$build" --target train_test sealift-train sealift-oracle 01_parallel_method -- -k 0 || compiled=false

say "run the training core's tests against it"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(train_test|train\.(trainer|oracle)|samples\.01_.*)$' "$@"
$compiled
