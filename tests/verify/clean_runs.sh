#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# By hand: ten quick runs of one host and two of two hosts (network namespaces on one cable), all without a fault, three of
# them beside other work: none may FAIL. A row a run: what it gave, so that somebody can read what was seen.
#   clean_runs.sh SEALIFT_VERIFY SEALIFT_TRAIN [FIRST [LAST]]      runs FIRST to LAST of the twelve
# Exits with 77 where no namespaces can be made. false_alarms.py draws fifty; hosts_test.sh puts faults in.
set -eu
here=$(dirname "$(readlink -f "$0")")
kHostCount=2
. "$here/../support/hosts.sh"
verify=$(readlink -f "$1") train=$(readlink -f "$2") first=${3:-1} last=${4:-12}
work=$(mktemp -d)
cd "$work"
mkdir -p prefix/bin prefix/share/sealift/golden
ln -s "$train" prefix/bin/sealift-train
ln -s /usr/bin/python3 prefix/bin/python3
printf 'name = "ddp"\nverb = "run"\nranks = 2\nmethod = "ddp"\n[settings]\nsteps = 8\n' >job.toml
on host1 "$verify" golden job.toml --prefix prefix --out prefix/share/sealift/golden/ddp.json >golden.txt 2>&1 ||
  fail "golden"

# What a shared machine does: each processor counts, and a compiler's kind of work comes and goes.
begin_other_work() {
  _work=
  for _i in $(seq "$(nproc)"); do
    (while :; do head -c 20000000 /dev/zero | sha256sum >/dev/null; done) &
    _work="$_work $!"
  done
}
end_other_work() {
  for _pid in $_work; do kill "$_pid" 2>/dev/null || true; done
}

# row NUMBER HOSTS RANKS BESIDE: what a run gave; fails where a check did
row() {
  python3 - "$@" "$got" "$((end - began))" <<'PYTHON'
import json, sys
number, hosts, ranks, beside, code, seconds = sys.argv[1:]
checks = json.load(open(f"out{number}/report.json"))["checks"]
count = {outcome: sum(check["outcome"] == outcome for check in checks) for outcome in ("PASS", "FAIL", "NOT RUN")}
busy = sum(check["reason"]["en"].startswith("the machine was busy") for check in checks)
print(f"| {number} | {hosts} | {ranks} | {beside} | {code} | {count['PASS']} | {count['FAIL']} | {count['NOT RUN']} "
      f"| {busy} | {seconds} |", flush=True)
for check in checks:
    if check["outcome"] == "FAIL":
        print(f"FALSE ALARM in run {number}: {check['name']}: {check['reason']['en']}", file=sys.stderr)
sys.exit(count["FAIL"] > 0)
PYTHON
}

run() {
  number=$1 hosts=$2 ranks=$3 beside=$4
  { [ "$number" -ge "$first" ] && [ "$number" -le "$last" ]; } || return 0
  common="--device cpu --level quick --prefix $work/prefix --out $work/out$number --seed $number"
  [ "$beside" = nothing ] || begin_other_work
  began=$(date +%s) got=0 _others=
  if [ "$hosts" = 1 ]; then
    on host1 "$verify" run $common --ranks "$ranks" >"run$number.txt" 2>&1 || got=$?
  else
    for _rank in $(seq $((ranks - 1)) -1 0); do
      _each=$((ranks / 2))
      on "host$((_rank / _each + 1))" env RANK="$_rank" WORLD_SIZE="$ranks" LOCAL_RANK=$((_rank % _each)) \
        LOCAL_WORLD_SIZE="$_each" MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 "$verify" run $common \
        >"run$number.$_rank.txt" 2>&1 &
      _others="$_others $!"
    done
    for _pid in $_others; do wait "$_pid" || got=$?; done
  fi
  end=$(date +%s)
  [ "$beside" = nothing ] || end_other_work
  [ -f "out$number/report.json" ] || fail "run $number wrote no report"
  python3 "$here/pages/chinese_pages.py" "out$number" || bad=1
  row "$number" "$hosts" "$ranks" "$beside" || bad=1
}

bad=0
echo "| run | hosts | ranks | beside | exit code | PASS | FAIL | NOT RUN | of them for other work | seconds |"
echo "|---|---|---|---|---|---|---|---|---|---|"
run 1 1 2 nothing
run 2 2 4 nothing
run 3 1 2 work
run 4 2 4 work
run 5 1 1 nothing
run 6 1 3 nothing
run 7 1 4 work
run 8 1 2 nothing
run 9 1 1 nothing
run 10 1 2 nothing
run 11 1 4 nothing
run 12 1 3 nothing
[ $bad = 0 ] || fail "there was a false alarm"
echo "no false alarm"
