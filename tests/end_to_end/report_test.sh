#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The report of a good run says PASS, says what it must, and does not say PASS when a step's result is missing or bad.
#   report_test.sh OUT BIN
set -euo pipefail
out=$1
project=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$out" <<'CHECK'
import json, pathlib, sys
out = pathlib.Path(sys.argv[1])
report = json.loads((out / "report.json").read_text())
page = (out / "report.html").read_text()
assert report["verdict"] == "PASS" and report["reasons"] == [], report["reasons"]
assert [run["parallel_method"] for run in report["runs"]] == ["none", "ddp", "fsdp"]
assert [run["world_size"] for run in report["runs"]] == [1, 2, 2]
assert report["check"]["max_relative_difference"] < 1e-5, report["check"]
assert report["verify"]["bytes"] > 2.5e9 and report["verify"]["entries"] >= 32 and report["verify"]["failures"] == []
locked = (out / "air_gap.lock.toml").read_text().count("\n[[wheel]]\n")
assert locked > 30 and report["install"]["audit"]["wheels"] == locked and report["install"]["audit"]["record_rows"] > 15000
failed = [check["name"] for check in report["site"]["checks"] if check["outcome"] == "FAIL"]
passed = {check["name"] for check in report["site"]["checks"] if check["outcome"] == "PASS"}
assert {"training.golden.trainer", "training.golden.qwen", "egress.run"} <= passed, passed
assert not failed and report["site"]["bundle"]["manifest_sha256"] == report["verify"]["identity"], (failed, report["site"]["bundle"])
assert report["python"]["torch"] == "2.11.0+cu130" and report["python"]["nccl"] == "2.28.9"
assert report["python"]["torch_from"].startswith("/opt/sealift/"), report["python"]
assert page.count("<polyline") == 3 and "<script" not in page and "http" not in page and "PASS" in page
CHECK

verdict() {  # what the report says when the logs are as `$1` made them
  rm -rf "$work/out" && mkdir -p "$work/out" && cp -r "$out/logs" "$work/out/logs"
  (cd "$work/out/logs" && eval "$1")
  if python3 "$project/samples/air_gap_report.py" "$work/out" 1 > "$work/said"; then echo PASS; else echo FAIL; fi
}
expect() { [ "$(verdict "$2")" = "$1" ] || { echo "expected $1 after: $2"; cat "$work/said"; exit 1; }; }
expect PASS true
expect FAIL 'rm check.json'
expect FAIL 'rm verdict.json'
expect FAIL 'sed -i "s/\"verdict\": \"PASS\"/\"verdict\": \"NOT RUN\"/" verdict.json'
expect FAIL 'sed -i s/\"pass\"/\"fail\"/ check.json'
expect FAIL 'sed -i "s/serve\tok/serve\tfailed/" steps.tsv'
expect FAIL 'sed -i /train/d steps.tsv'
expect FAIL 'rm python.json'
expect FAIL 'cp apply.json apply_again.json'
echo "the report tells a good run from bad ones"
