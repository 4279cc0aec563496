#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets with clang and runs each, one to a core, on the generated corpus and what it found before.
#   tests/fuzz/run.sh [SECONDS] [PATTERN] [SEED]    60 seconds a target, more by risk (targets.txt); all targets; seed 0
#                                                   begins somewhere else every time
# A finding is left in build/fuzz/findings; make it a case of tests/support/hostile, or a test named after it.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60} pattern=${2:-.} seed=${3:-0}
build=build/fuzz
cmake --preset fuzz > build/fuzz.log || { cat build/fuzz.log; exit 1; }
cmake --build $build --target fuzz_targets
rm -rf $build/seeds
$build/bin/make_corpus $build/seeds
mkdir -p $build/findings $build/logs

fuzz() {  # fuzz TARGET SECONDS SEED
  mkdir -p "build/fuzz/corpus/$1"
  if "build/fuzz/bin/fuzz_$1" -max_total_time="$2" -seed="$3" -timeout=25 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/findings/$1-" "build/fuzz/corpus/$1" "build/fuzz/seeds/$1" > "build/fuzz/logs/$1" 2>&1
  then printf '%-15s %3s s, %s runs, nothing found\n' "$1" "$2" "$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/logs/$1")"
  else printf '%-15s FOUND something:\n' "$1"; tail -40 "build/fuzz/logs/$1"; return 1
  fi
}
export -f fuzz

share() {  # share RISK FOLDERS... -> the seconds of a target
  local half=$((seconds * $1))  # of seconds: risk 2 is the usual
  shift
  if git rev-parse -q --verify HEAD~10 > /dev/null 2>&1 && ! git diff --quiet HEAD~10 -- "$@"; then half=$((half * 3 / 2)); fi
  echo $(((half + 1) / 2))
}
while read -r target risk folders; do
  # shellcheck disable=SC2086  # a list of words
  [[ $target == \#* || ! $target =~ $pattern ]] || echo "$target $(share "$risk" $folders) $seed"
done < tests/fuzz/targets.txt | sort -k2 -rn | xargs -P "$(nproc)" -L 1 bash -c 'fuzz "$@"' _
