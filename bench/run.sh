#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ours against a peer, in turn, on the same work: one line per comparison on stdout, all else on stderr.
#   bench/run.sh [PATTERN]    all comparisons, or the ones named by PATTERN; README.md says how to read the lines
# Needs what tests/run.sh needs. Leave the machine alone meanwhile: both sides use all of two cores.
# A family of comparisons is one compare_FAMILY.py; only what the chosen ones need is built.
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=${1:-}

cmake/prerequisites.sh build
python=build/prerequisites/torch/bin/python
chosen() { $python "bench/compare_$1.py" --names | grep -E -e "$pattern" >&2; }
build() {
  local preset=$1
  shift
  cmake --preset "$preset" > build/bench.log || { cat build/bench.log >&2; exit 1; }
  cmake --build "build/$preset" --target "$@" >&2
}

# Beside the figures of what is hashed and inflated: the rates of this machine.
say_rates() { $python bench/machine_rates.py build/tools/bin/sealift-bench-members build/tools/bin/sealift-pack; }

# A family of whole programs, over torch's closure.
whole_programs() {
  local family=$1 others=$2
  chosen "$family" || return 0
  ran=1
  build tools sealift-pack sealift-install sealift-start $others
  [ "$family" = repo ] || say_rates
  PATH=$PWD/build/prerequisites/uv/bin:$PATH $python "bench/compare_$family.py" build/tools/bin "$pattern"
}

ran=
for family in verify create install image; do whole_programs $family sealift-bench-members; done
whole_programs repo "sealift-repo sealift-bench-http"
if chosen delta; then
  ran=1
  build tools sealift-bench-delta
  $python bench/compare_delta.py build/tools/bin/sealift-bench-delta "$pattern"
fi
if chosen training; then
  ran=1
  build release bench
  PYTHONPATH=build/prerequisites/peers $python bench/compare_training.py build/release/bin/sealift-bench-training "$pattern"
fi
[ -n "$ran" ] || {
  echo "no comparison matches '$pattern'; there are:" >&2
  for family in verify create install image repo delta training; do $python "bench/compare_$family.py" --names >&2; done
  exit 1
}
