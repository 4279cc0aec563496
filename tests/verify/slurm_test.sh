#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A site of two and of four hosts (network namespaces), started by Slurm's srun: one report, from all of them, passes; then
# one fault at a time on one host, and the check that is there for it names this host and nobody else.
# usage: slurm_test.sh SEALIFT_VERIFY SEALIFT_TRAIN PHONE_HOME WRONG_CLOCK     the last two: built from this folder
# Exits with 77, ctest's code for "skipped", without Slurm or namespaces. SEALIFT_KEEP_REPORT=FOLDER: copies the report of
# four hosts there, to look at. Rates are left to hosts_test.sh: these hosts share one memory and its processors.
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
for program in slurmctld slurmd munged srun; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program; 'cmake/prerequisites.sh tests' installs it" >&2; exit 77; }
done
kHostCount=4
. "$tests/support/hosts.sh"
verify=$(readlink -f "$1") train=$(readlink -f "$2") phone_home=$(readlink -f "$3") wrong_clock=$(readlink -f "$4")
work=$(mktemp -d)
cd "$work"
need() { command -v "$1" >/dev/null || fail "no $1"; }
. "$tests/support/slurm_nodes.sh"

echo "a generation with a golden run of two ranks, which reads a file"
mkdir -p prefix/bin prefix/data prefix/share/sealift/golden
cp "$train" prefix/bin/sealift-train
mkdir prefix/lib && ln -s "$(readlink -f "${train%/*}/../lib")"/python3* prefix/lib/  # by which it finds LibTorch
ln -s /usr/bin/python3 prefix/bin/python3
head -c 4096 /dev/zero >prefix/data/table
identity() { printf '{"name":"site","version":1,"identity":"%064d","signers":["sha256:%064d"]}' "$1" 1; }
identity 1 >prefix/generation.json
printf 'name = "ddp"\nverb = "run"\nranks = 2\nmethod = "ddp"\n[settings]\nsteps = 8\n' >job.toml
on host1 "$verify" golden job.toml --prefix prefix --out prefix/share/sealift/golden/ddp.json >golden.txt 2>&1 || fail "golden"
python3 - prefix <<'PYTHON'
import hashlib, json, pathlib, sys
prefix = pathlib.Path(sys.argv[1])
file = prefix / "share/sealift/golden/ddp.json"
golden = json.loads(file.read_text())
golden["inputs"] = {"data/table": hashlib.sha256((prefix / "data/table").read_bytes()).hexdigest()}
file.write_text(json.dumps(golden))
PYTHON

# What a host does before its rank begins stands in on-HOST: its fault.
cat >start <<'END'
#!/bin/sh
fault=$1
shift
[ ! -e "$fault/on-$(hostname)" ] || . "$fault/on-$(hostname)"
exec "$@"
END
chmod +x start

# site NAME HOSTS ARGUMENTS...: four ranks on HOSTS hosts; OUT is NAME, the faults are in the folder faults
site() {
  name=$1 hosts=$2
  shift 2
  got=0
  on host1 srun -N"$hosts" -n4 --ntasks-per-node=$((4 / hosts)) -O "$work/start" "$work/faults" "$verify" run --device cpu \
    --prefix "$work/prefix" --out "$work/$name" --patience 300 "$@" >"$name.txt" 2>&1 || got=$?
  [ -f "$name/report.json" ] || fail "$name wrote no report"
}
mkdir faults
# judge NAME HOSTS CHECK AT_FAULT: the report has all hosts; CHECK failed by AT_FAULT (a pattern) alone; "" : none failed
judge() {
  python3 - "$@" <<'PYTHON' || fail "$1 is not as expected"
import json, re, sys
name, hosts, expected, at_fault = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
report = json.load(open(f"{name}/report.json"))
nodes = {node["host"]: node["ranks"] for node in report["nodes"]}
each = 4 // hosts
wanted = {f"host{n + 1}": list(range(n * each, (n + 1) * each)) for n in range(hosts)}
assert nodes == wanted, nodes
failed = {check["name"]: check for check in report["checks"] if check["outcome"] == "FAIL"}
for check in report["checks"]:
    print(f"  {check['outcome']:8}{check['name']}: {check['reason']['en'][:150]}")
assert set(failed) == ({expected} if expected else set()), set(failed)
assert report["verdict"] == ("FAIL" if expected else "PASS"), report["verdict"]
for culprit in failed[expected]["at_fault"] if expected else []:
    assert re.fullmatch(at_fault, culprit), culprit
assert not expected or failed[expected]["at_fault"], "nobody is named"
page = open(f"{name}/report.html").read()
for shown in ["host[1-4]"] if hosts == 4 else list(nodes):
    assert shown in page, f"{shown} is not on the page"
if not expected and hosts == 4:
    passed = {check["name"] for check in report["checks"] if check["outcome"] == "PASS"}
    for need in ("installation.identity", "machine.host", "machine.clocks", "arithmetic.same_bits", "communication.right",
                 "training.ddp", "training.fsdp", "training.golden.ddp", "egress.training", "egress.run"):
        assert need in passed, need
PYTHON
}

clean="--only installation --only machine.host --only machine.clocks --only arithmetic.same_bits --only communication.right
 --only training --only egress.training --only egress.run"
echo "two hosts with two ranks each: one report of both, all passes"
site two 2 $clean
judge two 2 "" ""
[ $got = 0 ] || fail "two hosts exited with $got"
echo "four hosts: the same"
site four 4 $clean
judge four 4 "" ""
[ $got = 0 ] || fail "four hosts exited with $got"
[ -z "${SEALIFT_KEEP_REPORT:-}" ] || cp -r four "$SEALIFT_KEEP_REPORT"
"$verify" diff two four >diff.txt 2>&1 || true
says diff.txt "host"

echo "host3's clock is three seconds ahead"
echo "export LD_PRELOAD=$wrong_clock" >faults/on-host3
site clock 4 --only machine.clocks
judge clock 4 machine.clocks host3
[ $got = 1 ] || fail "a wrong clock exited with $got"
rm faults/on-host3

echo "host2 has another bundle"
identity 2 >other.json
on host2 mount --bind other.json prefix/generation.json
site other 4 --only installation.identity
judge other 4 installation.identity host2
on host2 umount prefix/generation.json

echo "one byte of a file is another on host2"
{ head -c 4095 /dev/zero; printf X; } >table
on host2 mount --bind table prefix/data/table
site byte 4 --only training.golden.ddp
judge byte 4 training.golden.ddp 'data/table on host2'
on host2 umount prefix/data/table

echo "a program on host4 phones home"
printf '#!/bin/sh\n"%s" connect\nexec "%s" "$@"\n' "$phone_home" "$train" >train
chmod +x train
on host4 mount --bind train prefix/bin/sealift-train
site home 4 --only training.ddp --only egress.run
judge home 4 egress.run 'phone_home \(training.ddp on host4\) called connect to 192.0.2.1:443'
site home2 4 --only egress.training
judge home2 4 egress.training 'phone_home \(sealift-train, 2 ranks on host4\) called connect to 192.0.2.1:443'

# long NAME BURN_SECONDS SRUN_OPTIONS...: four ranks on two hosts in a long check; once it runs, `act` is done to them
long() {
  name=$1
  printf '[arithmetic]\nburn_seconds = %s\n' "$2" >"$name.toml"
  shift 2
  {
    until grep -q '"left":\[{"name":"arithmetic.heat"' "$name/checks/under_way.json" 2>/dev/null; do
      [ ! -e "$name.over" ] || exit 1
      sleep 0.1
    done
    act
  } &
  got=0
  on host1 srun -N2 -n4 --ntasks-per-node=2 -O "$@" "$verify" run --device cpu --prefix "$work/prefix" --out "$work/$name" \
    --level burn --only arithmetic.heat --site "$work/$name.toml" --patience 10 >"$name.txt" 2>&1 || got=$?
  touch "$name.over"
  wait $! || true
  [ -f "$name/report.json" ] || fail "$name wrote no report"
}
# rank RANK: its process
rank() {
  for _pid in $(pgrep -f -- "--out $work/$name "); do
    tr '\0' '\n' <"/proc/$_pid/environ" 2>/dev/null | grep -qx "SLURM_PROCID=$1" && echo "$_pid"
  done | tail -n 1
}

# nobody_at_fault NAME CHECK: of the report only CHECK failed, and it accuses no rank
nobody_at_fault() {
  python3 -c 'import json, sys
check, = [each for each in json.load(open(sys.argv[1] + "/report.json"))["checks"] if each["outcome"] == "FAIL"]
assert check["name"] == sys.argv[2] and check["at_fault"] == [], check' "$@"
}

echo "rank 3 is killed: the others end by themselves, and srun exits with the highest code, which is its own"
act() { kill -9 "$(rank 3)"; }
long killed 4
judge killed 2 arithmetic.heat 'rank 3 on host2 \(cpu\)'
[ $got = 137 ] || fail "a killed rank exited with $got"
echo "with --kill-on-bad-exit srun ends the others, whose 143 is higher; the report names the one that was first"
long first 600 --kill-on-bad-exit
judge first 2 arithmetic.heat 'rank 3 on host2 \(cpu\)'
[ $got = 143 ] || fail "a killed rank exited with $got under --kill-on-bad-exit"
says first/report.txt "ended without a word before the run was told to end"
echo "scancel: nobody is at fault"
act() { on host1 scancel --user="$(id -un)"; }
long cancelled 600
says cancelled/report.txt "the run was told to end from outside, by signal 15 (SIGTERM)"
nobody_at_fault cancelled arithmetic.heat || fail "scancel blamed somebody"
echo "a time limit, of a minute, Slurm's shortest: SIGTERM, and SIGKILL half a minute later, by when all five files are there"
act() { :; }
long limited 600 --time=1
for page in report.json report.html report.txt report.zh.html report.zh.txt; do
  [ -s "limited/$page" ] || fail "a time limit left no $page"
done
for page in report.html report.txt; do says "limited/$page" "the run was told to end from outside, by signal 15 (SIGTERM)"; done
for page in report.zh.html report.zh.txt; do says "limited/$page" "收到外部发来的信号 15（SIGTERM）"; done
nobody_at_fault limited arithmetic.heat || fail "a time limit blamed somebody"
says limited.txt "DUE TO TIME LIMIT"
[ $got = 143 ] || fail "a time limit exited with $got"
echo "a misspelt check: each rank refuses it"
got=0
on host1 srun -N2 -n4 --ntasks-per-node=2 -O "$verify" run --only nothing --out "$work/none" >none.txt 2>&1 || got=$?
[ $got = 2 ] || fail "a misspelt --only exited with $got"
