#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# samples/many_machines/slurm, submitted to a real Slurm of two nodes (network namespaces), each with a disk of its own.
# usage: slurm_test.sh BIN UV
set -eu
tests=$(dirname "$(readlink -f "$0")")/..
bin=$1 uv=$2
for program in slurmctld slurmd munged sbatch sbcast srun; do
  command -v $program >/dev/null || { echo "SKIPPED: no $program; 'cmake/prerequisites.sh tests' installs it" >&2; exit 77; }
done
. "$tests/support/hosts.sh"
. "$tests/many_machines/small_bundle.sh"
. "$tests/support/flip_bit.sh"
work=$(mktemp -d)
cd "$work"

need() { command -v "$1" >/dev/null || fail "no $1"; }
count() { grep -oF -- "$2" "$1" | wc -l; }  # not lines: srun cuts long ones, so that two nodes' may come as one

small_bundle "$bin" "$uv" 1
bundle=$work/out/small-1
fingerprint=$(cat keys/root.fingerprint)
mkdir disk
for host in host1 host2; do on $host mount -t tmpfs tmpfs "$work/disk"; done
. "$tests/support/slurm_nodes.sh"
cp -r "$tests/../samples/many_machines/slurm" site
export SEALIFT_SLURM=$work/site SEALIFT_LANDING=$work/disk

# submit SAMPLE OUT PREFIX COMMAND...: on both nodes, two tasks each; the job's exit code
submit() {
  sample=$1 out=$2 prefix=$3
  shift 3
  on host1 sbatch --wait --nodes=2 --ntasks=4 --ntasks-per-node=2 --mem=1 --output="$work/$out" \
    "site/$sample" "$bundle" "$fingerprint" "$prefix" "$@" >submit-"$out" 2>&1
}
# all_ranks OUT PREFIX
all_ranks() {
  [ "$(count "$1" " of 4 on host")" = 4 ] || fail "$1: not four ranks"
  for rank in 0 1 2 3; do says "$1" "rank $rank of 4 on host$((rank / 2 + 1)) in $2/generations/0001"; done
}

echo "node-local: the bundle goes to both nodes, each installs for itself, the job runs from its own disk"
local=$work/disk/env
submit node_local.sbatch first.txt "$local" python3 -m where || fail "node_local.sbatch"
all_ranks first.txt "$local"
[ "$(count first.txt '"action":"install"')" = 2 ] || fail "not two installations"
[ ! -e "$local" ] || fail "the prefix is not on the nodes' own disks"
for host in host1 host2; do [ "$(on $host ls disk)" = env ] || fail "something was left behind on $host"; done

echo "the next job sends nothing"
submit node_local.sbatch second.txt "$local" python3 -m where || fail "node_local.sbatch, again"
all_ranks second.txt "$local"
[ "$(count second.txt '"action"')" = 0 ] || fail "the bundle was sent again"

echo "a node with a new disk gets it, the other has it already"
on host2 sh -c 'chmod -R u+w disk/env && rm -rf disk/env'
submit node_local.sbatch third.txt "$local" python3 -m where || fail "node_local.sbatch with a new node"
all_ranks third.txt "$local"
[ "$(count third.txt '"action":"install"')" = 1 ] && [ "$(count third.txt '"action":"nothing"')" = 1 ] || fail "third.txt"

echo "shared prefix: of two jobs that come at once one installs, the other finds it installed, both run"
shared=$work/shared/env
mkdir shared
submit shared_prefix.sbatch one.txt "$shared" python3 -m where &
first=$!
submit shared_prefix.sbatch two.txt "$shared" python3 -m where || fail "shared_prefix.sbatch"
wait $first || fail "shared_prefix.sbatch"
all_ranks one.txt "$shared"
all_ranks two.txt "$shared"
cat one.txt two.txt >both.txt
[ "$(count both.txt '"action":"install"')" = 1 ] && [ "$(count both.txt '"action":"nothing"')" = 1 ] || fail "both.txt"

echo "a job waits for whoever holds the prefix, and goes on when that one is killed"
on host2 python3 -c '
import fcntl, os, struct, sys, time
file = open(sys.argv[1], "r+")
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK, as sealift-install does
with open("held.new", "w") as held: held.write(str(os.getpid()))
os.rename("held.new", "held")
while True: time.sleep(60)' "$shared/lock" &
until [ -e held ]; do sleep 0.1; done
submit shared_prefix.sbatch wait.txt "$shared" python3 -m where &
job=$!
until grep -qs "somebody else is changing this prefix" wait.txt; do
  kill -0 $job 2>/dev/null || fail "the job did not wait"
  sleep 0.1
done
[ "$(count wait.txt "rank ")" = 0 ] || fail "the job did not wait"
kill -9 "$(cat held)"
wait $job || fail "the job that waited"
all_ranks wait.txt "$shared"

if [ -e /dev/fuse ]; then
  echo "mounted: both nodes show the bundle's image while the job runs, and nothing is left"
  small_bundle "$bin" "$uv" 2 "[squashfs]
wheels = false"
  bundle=$work/out/small-2 mounts=$work/disk/mounts
  submit mounted.sbatch mounted.txt "$mounts" python3 -m where || fail "mounted.sbatch"
  [ "$(count mounted.txt " of 4 on host")" = 4 ] || fail "mounted.txt: not four ranks"
  for rank in 0 1 2 3; do says mounted.txt "rank $rank of 4 on host$((rank / 2 + 1)) in $mounts/job-"; done
  [ "$(count mounted.txt "/env, read only")" = 2 ] || fail "not two mounts"
  got=0
  submit mounted.sbatch failed.txt "$mounts" false || got=$?
  [ $got = 1 ] || fail "a job that fails gave $got"
  flip_bit "$(echo "$bundle"/*.chunks)" 8
  got=0
  submit mounted.sbatch bad-mounted.txt "$mounts" python3 -m where || got=$?
  [ $got = 5 ] || fail "mounted.sbatch with a changed chunk list gave $got"
  [ "$(count bad-mounted.txt "rank ")" = 0 ] || fail "a job ran on a changed bundle"
  for host in host1 host2; do
    [ -z "$(on $host ls disk/mounts)" ] || fail "something was left behind on $host"
    ! on $host grep -q "$mounts" /proc/mounts || fail "something is still mounted on $host"
  done
  bundle=$work/out/small-1
else
  echo "SKIPPED in part: no /dev/fuse, so nothing is mounted" >&2
fi

echo "a damaged bundle: refused with the installer's own code on every node, no task of the job starts"
chmod u+w "$bundle"/*.vol002
flip_bit "$(echo "$bundle"/*.vol002)" 4000000
for kind in node_local shared_prefix; do
  got=0
  submit $kind.sbatch bad-$kind.txt "$work/disk/other" python3 -m where || got=$?
  [ $got = 5 ] || fail "$kind with a damaged volume gave $got"
  says bad-$kind.txt "small-1.vol002"
  [ "$(count bad-$kind.txt "rank ")" = 0 ] || fail "$kind ran on a damaged bundle"
done
for host in host1 host2; do
  on $host sh -c '[ ! -e disk/other/current ]' || fail "$host has it"
  [ -z "$(on $host find disk -maxdepth 1 -name 'sealift-*')" ] || fail "something was left behind on $host"
done
