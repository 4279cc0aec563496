#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ours against a peer, in turn, on the same work: one line per comparison on stdout, all else on stderr.
#   bench/run.sh [PATTERN]    all comparisons, or those whose name matches; README.md says how to read the lines
# Needs what tests/run.sh needs. Leave the machine alone meanwhile: both sides use all of two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake/prerequisites.sh build
cmake --preset release > build/bench.log || { cat build/bench.log >&2; exit 1; }
cmake --build build/release --target bench >&2
exec build/prerequisites/torch/bin/python bench/compare_training.py build/release/bin/sealift-bench-training "$@"
