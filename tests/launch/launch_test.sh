#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sealift-launch gives any program its place among the ranks, whatever started it; it passes signals on, and one rank
# that fails ends the others with all that they started, and is named. Also in front of sealift-start, which stands
# before each program of an installed environment.
#   launch_test.sh SEALIFT_LAUNCH SEALIFT_START
set -uo pipefail
launch=$(realpath "$1")
start=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { echo "FAILED: $*"; failed=1; }
expect() { [ "$2" = "$3" ] || complain "$1"$'\n'"  expected: $2"$'\n'"  got:      $3"; }
clean() { env -i PATH="$PATH" "$@"; }  # what this test was started by is no launcher of ours
show='echo $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE node $NODE_RANK/$NNODES at $MASTER_ADDR:$MASTER_PORT'
ranks() { clean "$@" "$launch" --quiet "${options[@]}" sh -c "$show" | sort; }  # VARIABLES
slurm="SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=gpu[01-04]"

# Nothing is set: rank 0 of 1; --nproc N: a world on this host, with one port for all.
options=()
alone=$(ranks A=1)
expect 'alone' '0/1 local 0/1 node 0/1 at 127.0.0.1' "${alone%:*}"
options=(--nproc 2)
two=$(ranks A=1)
here=$'0/2 local 0/2 node 0/1 at 127.0.0.1\n1/2 local 1/2 node 0/1 at 127.0.0.1'
expect 'two' "$here" "$(sed 's/:[0-9]*$//' <<< "$two")"
expect 'one port' 1 "$(sed 's/.*://' <<< "$two" | sort -u | wc -l)"

# Each launcher of the table.
options=()
expect 'srun, a task for each rank' '5/8 local 1/2 node 2/4 at gpu01:4000' "$(ranks $slurm MASTER_PORT=4000 \
  SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NUM_NODES=4 SLURM_STEP_TASKS_PER_NODE='2(x4)' SLURM_NODEID=2 SLURM_PROCID=5 \
  SLURM_LOCALID=1)"
expect 'srun, hosts of different sizes' '6/7 local 0/1 node 3/4 at gpu01:4000' "$(ranks $slurm MASTER_PORT=4000 \
  SLURM_STEP_NUM_TASKS=7 SLURM_STEP_NUM_NODES=4 SLURM_STEP_TASKS_PER_NODE='2(x3),1' SLURM_NODEID=3 SLURM_PROCID=6 \
  SLURM_LOCALID=0)"
torchrun_4="WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=5"  # two ranks on each host
expect 'torchrun' '3/4 local 1/2 node 1/2 at a:5' "$(ranks $torchrun_4 RANK=3 LOCAL_RANK=1)"
expect 'mpirun' '3/4 local 1/2 node 1/2 at a:5' "$(ranks OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 \
  OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_ADDR=a MASTER_PORT=5)"
second=$'2/4 local 0/2 node 1/2 at a:5\n3/4 local 1/2 node 1/2 at a:5'
expect 'Kubernetes' "$second" "$(ranks PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=2 PET_MASTER_ADDR=a \
  PET_MASTER_PORT=5)"
expect 'IPv6 in brackets' '3/4 local 1/2 node 1/2 at fd94::1:5' "$(ranks WORLD_SIZE=4 LOCAL_WORLD_SIZE=2 RANK=3 \
  LOCAL_RANK=1 MASTER_ADDR=[fd94::1] MASTER_PORT=5)"
expect 'PAI-DLC' "$second" "$(ranks RANK=1 WORLD_SIZE=2 NPROC_PER_NODE=2 MASTER_ADDR=a MASTER_PORT=5)"
expect 'ms-swift' "$second" "$(ranks NNODES=2 NODE_RANK=1 NPROC_PER_NODE=2 MASTER_ADDR=a MASTER_PORT=5)"

# One task on each host, and --nproc ranks in it; or the program starts them itself.
one_each="$slurm MASTER_PORT=5 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE=1(x2)
  SLURM_NODEID=1 SLURM_PROCID=1 SLURM_LOCALID=0"
options=(--nproc 2)
expect 'srun, a task for each host' "${second//at a:5/at gpu01:5}" "$(ranks $one_each)"
options=(--nproc=2 --per-host)
show_host='echo $NODE_RANK of $NNODES hosts with $NPROC_PER_NODE at $MASTER_ADDR:$MASTER_PORT, rank ${RANK-none}'
expect 'for a program that starts its ranks' '1 of 2 hosts with 2 at gpu01:5, rank none' \
  "$(clean $one_each "$launch" --quiet "${options[@]}" sh -c "$show_host")"

# What does not fit together is refused with its name, and nothing is started.
refused() {  # WORDS VARIABLES... -- ARGUMENTS...
  local words=$1 variables=() code; shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  clean "${variables[@]}" "$launch" "$@" > "$work/out" 2> "$work/said"; code=$?
  expect "code of: $words" 2 "$code"
  grep -q -- "$words" "$work/said" || complain "nothing says '$words': $(cat "$work/said")"
  [ ! -s "$work/out" ] || complain "started although $words"
}
refused 'MASTER_ADDR is not set' RANK=1 WORLD_SIZE=2 -- echo started
refused 'flux run started this process as one of several' FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2 -- --nproc 2 echo started
refused "'master'" $torchrun_4 MASTER_PORT=tcp://10.0.0.1:29500 RANK=3 LOCAL_RANK=1 -- echo started
refused '2 ranks on this host; leave --nproc out' $torchrun_4 RANK=3 LOCAL_RANK=1 -- --nproc 4 echo started
refused "--nproc is 'x'" A=1 -- --nproc x echo started
refused '--nproc is' A=1 -- --nproc
refused 'is not known' A=1 -- --ranks 2 echo started
refused 'no COMMAND' A=1 --
refused 'has started 2 ranks' $torchrun_4 RANK=0 LOCAL_RANK=0 -- --per-host echo started

# A single rank is the process itself; its options are its own; a store that nobody serves is not waited for.
expect 'the same process' "$(clean sh -c "echo \$\$; exec '$launch' --quiet sh -c 'echo \$\$'" | uniq | wc -l)" 1
expect 'own options' '--nproc 9 -x' "$(clean "$launch" --quiet echo --nproc 9 -x)"
expect 'behind --' 'a' "$(clean "$launch" --quiet -- echo a)"
expect 'no agent' none "$(clean TORCHELASTIC_USE_AGENT_STORE=True "$launch" --quiet \
  sh -c 'echo ${TORCHELASTIC_USE_AGENT_STORE-none}')"
expect 'not there' 127 "$(clean "$launch" --quiet no-such-program 2> /dev/null; echo $?)"

# One that fails ends the others and what they started, is named, and gives the code.
cat > "$work/one_fails" <<END
sleep 1000 &
echo \$! > '$work/started.'\$RANK
[ \$RANK = 1 ] || exec sleep 1000
for rank in 0 2; do while [ ! -s '$work/started.'\$rank ]; do sleep 0.02; done; done
exit 5
END
clean "$launch" --quiet --nproc 3 sh "$work/one_fails" 2> "$work/said"
expect 'the code of the rank' 5 $?
grep -q 'rank 1 of 3 on .*, ended with code 5; ending the others' "$work/said" || complain "not named: $(cat "$work/said")"
expect 'only one is named' 1 "$(wc -l < "$work/said")"
for rank in 0 2; do
  ! grep -qs '^State:.*[RSD] ' "/proc/$(cat "$work/started.$rank")/status" || complain "what rank $rank started lives"
done
kill "$(cat "$work/started.1")" 2> /dev/null  # of the rank that failed by itself
clean "$launch" --quiet --nproc 2 sh -c '[ $RANK = 0 ] && kill -9 $$; exec sleep 1000' 2> "$work/said"
expect 'killed' 137 $?
grep -q 'rank 0 of 2 .* was ended by signal 9 (Killed)' "$work/said" || complain "not named: $(cat "$work/said")"

# Signals reach every rank; SIGUSR1 ends nothing, and SIGTERM lets each save what it has.
cat > "$work/traps" <<END
trap 'echo > "$work/usr1.\$RANK"' USR1
trap 'echo > "$work/saved.\$RANK"; exit 9' TERM
echo > "$work/ready.\$RANK"
while :; do sleep 0.02; done
END
env -i PATH="$PATH" "$launch" --quiet --nproc 2 bash "$work/traps" 2> "$work/said" &
launcher=$!
both() {
  for _ in $(seq 500); do [ -e "$work/$1.0" ] && [ -e "$work/$1.1" ] && return; sleep 0.02; done
  complain "no $1 in both ranks"
}
both ready
kill -USR1 $launcher
both usr1
kill -TERM $launcher
wait $launcher
expect 'the code after SIGTERM' 9 $?
both saved
! grep -q 'ending the others' "$work/said" || complain "says that it ends what was asked to end"

# In front of an installed environment's program, which sealift-start becomes.
mkdir -p "$work/env/bin" "$work/env/libexec"
cp "$start" "$work/env/bin/tool"
printf '#!/bin/sh\necho "rank $RANK of $WORLD_SIZE with $1"\nexit ${2-0}\n' > "$work/env/libexec/tool"
chmod +x "$work/env/libexec/tool"
expect 'through the starter' $'rank 0 of 2 with x y\nrank 1 of 2 with x y' \
  "$(PATH=$work/env/bin:$PATH; clean "$launch" --quiet --nproc 2 tool 'x y' 2> /dev/null | sort)"
clean "$launch" --quiet --nproc 2 "$work/env/bin/tool" x 3 > /dev/null 2>&1
expect 'the code through the starter' 3 $?
[ $failed = 0 ] && echo "sealift-launch gives each rank its place"
exit $failed
