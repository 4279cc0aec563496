#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# samples/air_gap.sh refuses words that it does not know before it does anything, and says what it knows; a report of a run
# with ms-swift does not say PASS unless `swift sft` gave each golden run.
set -euo pipefail
project=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $1"; cat said; exit 1; }
expect() {  # CODE WORDS…
  wanted=$1 code=0
  shift
  "$project/samples/air_gap.sh" "$@" > said 2>&1 || code=$?
  [ "$code" = "$wanted" ] || fail "exit code $code in place of $wanted: $*"
  grep -q -- '--with-ms-swift   the bundle also holds ms-swift' said || fail "the usage is not shown: $*"
  [ "$(ls)" = said ] || fail "something was written: $*"
}
expect 0 --help
expect 2 --with-swift out
grep -q 'there is no option --with-swift' said || fail "the option is not named"
expect 2 --with-ms-swift one two

# judge OUTCOME: what the report says when all steps are good and swift's check of qwen has this outcome ("": none)
judge() {
  rm -rf out && mkdir -p out/logs
  python3 - "$1" <<'PYTHON'
import json, pathlib, re, sys
logs = pathlib.Path("out/logs")
report = pathlib.Path(__import__("os").environ["PROJECT"], "samples/air_gap_report.py").read_text()
stages = json.loads(re.search(r"^STAGES = (.*)$", report, re.M).group(1))
logs.joinpath("steps.tsv").write_text("".join(f"{name}\tok\t1\n" for name in stages))
check = {"name": "python.swift.qwen", "outcome": sys.argv[1], "reason": {"en": "swift agrees"}}
verdict = {"verdict": "PASS", "level": "full", "checks": [check] if sys.argv[1] else []}
same = {"runs": 3, "digits": 7.0, "max_relative_difference": 0, "final_loss": 1, "entropy_floor": 1}
python = {"ranks_equal": True, "ddp_max_difference": 0, "ddp_ranks": 2, "python": "", "torch": "", "cuda": "", "nccl": "", "cudnn": ""}
for name, value in {"apply_again": {"action": "nothing"}, "python": python, "check": {"verdict": "pass", **same},
                    "verdict": verdict}.items():
    logs.joinpath(f"{name}.json").write_text(json.dumps(value))
PYTHON
  [ "$2" = without ] || echo qwen > out/logs/ms_swift
  if python3 "$project/samples/air_gap_report.py" out 1 > said; then echo PASS; else echo FAIL; fi
}
export PROJECT=$project
[ "$(judge PASS with)" = PASS ] || fail "a good run is not good"
grep -q 'swift agrees' out/report.html || fail "the page does not say what swift gave"
for outcome in "NOT RUN" FAIL ""; do
  [ "$(judge "$outcome" with)" = FAIL ] || fail "swift's check was '$outcome', and the report says PASS"
  grep -q 'swift sft did not give the golden run qwen' said || fail "the reason is not said"
done
[ "$(judge "" without)" = PASS ] || fail "without ms-swift nothing is asked of it"
echo "air_gap.sh knows its options, and its report what swift must give"
