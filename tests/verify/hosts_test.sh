#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks of communication on four hosts (network namespaces on one switch): clean, with a slow link, a slow host.
# Links are slowed by tc (htb, tbf), and lose by netem where the kernel has it. The check must name the link or the
# host, and nobody when nothing is slow.
# usage: hosts_test.sh SEALIFT_VERIFY      exits with 77, ctest's code for "skipped", without namespaces or netem
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
kHostCount=4
. "$tests/support/hosts.sh"
verify=$(readlink -f "$1")
command -v tc >/dev/null || { echo "SKIPPED: no tc; Debian's iproute2 has it" >&2; exit 77; }
work=$(mktemp -d)
cd "$work"

# check NAME HOSTS ARGUMENTS...: runs the checks of communication on hosts 1 to HOSTS
check() {
  name=$1 last=$2
  shift 2
  _ranks=
  for i in $(seq 2 "$last"); do
    on "host$i" env RANK=$((i - 1)) WORLD_SIZE="$last" MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 \
      "$verify" run --device cpu --only communication --out "$name" "$@" >"$name.host$i.txt" 2>&1 &
    _ranks="$_ranks $!"
  done
  got=0
  on host1 env RANK=0 WORLD_SIZE="$last" MASTER_ADDR=10.77.0.1 MASTER_PORT=4100 \
    "$verify" run --device cpu --only communication --out "$name" "$@" >"$name.txt" 2>&1 || got=$?
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

echo "two hosts: right, and nobody is named"
check two 2
[ $got = 0 ] || fail "two hosts exited with $got"
echo "four hosts: the same"
check four 4
[ $got = 0 ] || fail "four hosts exited with $got"

echo "the link between host2 and host4 is slow: it is named as a pair"
on host2 tc qdisc add dev cable2 root handle 1: htb default 1
on host2 tc class add dev cable2 parent 1: classid 1:1 htb rate 30gbit
on host2 tc class add dev cable2 parent 1: classid 1:4 htb rate 80mbit
on host2 tc filter add dev cable2 parent 1: protocol ip u32 match ip dst 10.77.0.4/32 flowid 1:4
check link 4
[ $got = 1 ] || fail "a slow link exited with $got"
expect link communication.pairs '["host2 - host4"]'
expect link communication.right '[]'
on host2 tc qdisc del dev cable2 root

echo "host3 is slow with everyone: it is named as a host"
on host3 tc qdisc add dev cable3 root tbf rate 80mbit burst 256kb limit 4mb
check host 4
[ $got = 1 ] || fail "a slow host exited with $got"
expect host communication.pairs '["host3"]'
on host3 tc qdisc del dev cable3 root

echo "two hosts below what the site expects"
printf '[communication.at_least_gb]\npair = 1000.0\n' >site.toml
check site 2 --site site.toml
expect site communication.pairs '["host1 - host2"]'

echo "host3's cable loses packets: it is named, and every element is right"
if ! on host3 tc qdisc add dev cable3 root netem loss 5% delay 2ms; then
  echo "NOT RUN: this kernel has no netem; all of the above holds"
  exit 77
fi
check loss 4
[ $got = 1 ] || fail "a lossy cable exited with $got"
expect loss communication.pairs '["host3"]'
expect loss communication.right '[]'
on host3 tc qdisc del dev cable3 root
