#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks of communication on four hosts (network namespaces on one switch): clean, with a slow link, a slow host.
# or one that loses packets. Links are slowed by tc (htb, tbf), and lose by iptables, which more kernels have than netem.
# The check must name the link or the host, and nobody when nothing is slow or lost.
# usage: hosts_test.sh SEALIFT_VERIFY      exits with 77, ctest's code for "skipped", without namespaces, tc or iptables
#        SEALIFT_BUSY=1: this machine does other work, so a slow link may also be NOT RUN for that; the test says where
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
kHostCount=4
. "$tests/support/hosts.sh"
verify=$(readlink -f "$1")
command -v tc >/dev/null || { echo "SKIPPED: no tc; Debian's iproute2 has it" >&2; exit 77; }
work=$(mktemp -d)
cd "$work"
only='--only communication'

# check NAME HOSTS ARGUMENTS...: runs the checks of communication on hosts 1 to HOSTS
check() {
  name=$1 last=$2
  shift 2
  _ranks=
  for i in $(seq 2 "$last"); do
    on "host$i" env RANK=$((i - 1)) WORLD_SIZE="$last" MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 \
      "$verify" run --device cpu $only --out "$name" "$@" >"$name.host$i.txt" 2>&1 &
    _ranks="$_ranks $!"
  done
  got=0
  on host1 env RANK=0 WORLD_SIZE="$last" MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 \
    "$verify" run --device cpu $only --out "$name" "$@" >"$name.txt" 2>&1 || got=$?
  for _rank in $_ranks; do wait "$_rank" || true; done
  grep -E 'communication\.' "$name.txt" || fail "$name says nothing"
}
# at_fault NAME CHECK: who is at fault there, as JSON without spaces
at_fault() {
  python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["check"]["at_fault"]))' "$1/checks/$2.json"
}
expect() {
  [ "$(at_fault "$1" "$2")" = "$3" ] || fail "$1 $2: at fault are $(at_fault "$1" "$2"), expected $3"
}

# is_busy NAME CHECK: with SEALIFT_BUSY=1, whether CHECK names nobody since this machine does other work
is_busy() {
  [ "${SEALIFT_BUSY:-}" = 1 ] && grep -q "NOT RUN.*$2: the machine was busy" "$1.txt" || return 1
  echo "NOT RUN: this machine was busy, so $2 says nothing here"
  expect "$1" "$2" '[]'
}
# expect_clean NAME: nobody is named, and nothing is NOT RUN; beside other work it may be, and says so.
expect_clean() {
  is_busy "$1" communication.pairs || is_busy "$1" communication.bandwidth || [ $got = 0 ] || fail "$1 exited with $got"
  [ $got != 1 ] || fail "$1 exited with $got"
}
# expect_slow NAME WHO: communication.pairs names WHO; beside other work it names nobody, is NOT RUN and says so.
expect_slow() {
  ! is_busy "$1" communication.pairs || return 0
  [ $got = 1 ] || fail "$1 exited with $got"
  expect "$1" communication.pairs "$2"
}

echo "two hosts: right, and nobody is named"
check two 2
expect_clean two
echo "four hosts: the same"
check four 4
expect_clean four

echo "two hosts with one hostname are two, as containers of one image are"
for i in 1 2; do on "host$i" hostname box; done
check named 2
for i in 1 2; do on "host$i" hostname "host$i"; done
expect_clean named
python3 - named/report.json <<'PYTHON' || fail "hosts of one name were not told apart"
import json, sys
report = json.load(open(sys.argv[1]))
assert [node["host"] for node in report["nodes"]] == ["box#1", "box#2"], report["nodes"]
pairs = next(check for check in report["checks"] if check["name"] == "communication.pairs")
assert pairs["matrices"][0]["rows"] == ["box#1", "box#2"], pairs["matrices"]
assert "the one pair of 2 nodes" in pairs["reason"]["en"], pairs["reason"]
PYTHON

echo "host2 is lost while a check runs: it is named, and since when nothing was heard of it; hosts of one name keep theirs"
printf '[arithmetic]\nburn_seconds = 4\n' >long.toml
# rank RANK: of the long check, on its host
rank() {
  on "host$(($1 + 1))" env RANK="$1" WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 "$verify" run --device cpu \
    --level burn --only arithmetic.heat --site long.toml --patience 5 --out lost >"lost.$1.txt" 2>&1
}
for i in 1 2; do on "host$i" hostname box; done
rank 1 &
other=$!
rank 0 &
first=$!
until grep -q '"left":\[{"name":"arithmetic.heat"' lost/checks/under_way.json 2>/dev/null; do
  kill -0 $first || fail "a run of two hosts ended at once"
  sleep 0.1
done
on host2 ip link set cable2 down
got=0
wait $first || got=$?
kill -9 $other 2>/dev/null || true
[ $got = 1 ] || fail "a lost host exited with $got"
on host2 ip link set cable2 up
for i in 1 2; do on "host$i" hostname "host$i"; done
python3 - lost/report.json <<'PYTHON' || fail "the lost host was not named"
import json, sys
heat = next(check for check in json.load(open(sys.argv[1]))["checks"] if check["name"] == "arithmetic.heat")
assert heat["outcome"] == "FAIL" and heat["at_fault"] == ["rank 1 on box#2 (cpu)"], heat
assert "is silent since 20" in heat["reason"]["en"] and "起没有消息" in heat["reason"]["zh"], heat
PYTHON

echo "the link between host2 and host4 is slow: it is named as a pair"
on host2 tc qdisc add dev cable2 root handle 1: htb default 1
on host2 tc class add dev cable2 parent 1: classid 1:1 htb rate 30gbit
on host2 tc class add dev cable2 parent 1: classid 1:4 htb rate 80mbit
on host2 tc filter add dev cable2 parent 1: protocol ip u32 match ip dst 10.77.0.4/32 flowid 1:4
check link 4
expect_slow link '["host2 - host4"]'
expect link communication.right '[]'
on host2 tc qdisc del dev cable2 root

echo "host3 is slow with everyone: it is named as a host"
on host3 tc qdisc add dev cable3 root tbf rate 80mbit burst 256kb limit 4mb
check host 4
expect_slow host '["host3"]'
on host3 tc qdisc del dev cable3 root

echo "two hosts below what the site expects"
printf '[communication.at_least_gb]\npair = 1000.0\n' >site.toml
check site 2 --site site.toml
expect_slow site '["host1 - host2"]'

# lose HOST FROM SHARE: HOST never sees that share of the packets that come from FROM. Dropped where they arrive, as a
# cable does: what a sender's own filter drops, its TCP is told at once.
lose() {
  on "$1" iptables -A INPUT -s "$2" -m statistic --mode random --probability "$3" -j DROP 2>iptables.txt
}
whole_again() { on "$1" iptables -F INPUT; }

echo "the link from host2 to host4 loses 1 of 100 packets: it is named as a pair, and every element is right"
if ! lose host4 10.77.0.2 0.01; then
  echo "NOT RUN: no loss can be had here: $(cat iptables.txt); all of the above holds"
  exit 77
fi
# Packets as on a wire, and not 64 KiB of them as one.
for i in 1 2 3 4; do on "host$i" ip link set dev "cable$i" gso_max_segs 1; done
check loss 4
expect_slow loss '["host2 - host4"]'
expect loss communication.right '[]'
is_busy loss communication.pairs || says loss.txt 'packets from host2 to host4'

echo "two hosts, and the link between them loses"
whole_again host4
lose host2 10.77.0.1 0.01
check loss_of_two 2
expect_slow loss_of_two '["host1 - host2"]'
whole_again host2

echo "host3's cable loses what comes and what goes: it is named as a host"
lose host3 10.77.0.0/24 0.01
for i in 1 2 4; do lose "host$i" 10.77.0.3 0.01; done
check loss_of_host 4
expect_slow loss_of_host '["host3"]'
for i in 1 2 3 4; do whole_again "host$i"; done

echo "nothing is lost any more: nobody is named"
check whole 4
expect_clean whole
