#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sealift-train on two hosts (network namespaces), started by the real launchers; each must compute what one process does.
# usage: multi_host_test.sh SEALIFT_TRAIN TORCHRUN LAUNCHER     LAUNCHER: variables, addresses, torchrun, mpirun or srun
set -eu
support=$(dirname "$(readlink -f "$0")")/../support
. "$support/hosts.sh"
train=$1 torchrun=$2 launcher=$3
work=$(mktemp -d)
cd "$work"

need() { command -v "$1" >/dev/null || fail "no $1; 'cmake/prerequisites.sh tests' installs it"; }
# agrees OUT: the losses of OUT are those of one process
agrees() { "$train" check --tolerance 1e-5 --floor-factor 100 none/result.json "$1/result.json" >check.txt 2>&1 || fail "$1 differs"; }
# both COMMAND...: runs it on both hosts at once, with NODE_RANK set; fails when either does
both() {
  on host1 env NODE_RANK=0 "$@" >host1.txt 2>&1 &
  first=$!
  on host2 env NODE_RANK=1 "$@" >host2.txt 2>&1 || fail "host2 failed"
  wait $first || fail "host1 failed"
}

export SEALIFT_TRAIN_STEPS=5 SEALIFT_TRAIN_LAYERS=2 SEALIFT_TRAIN_WIDTH=64 SEALIFT_TRAIN_TIMEOUT_SECONDS=60
"$train" run --out none >none.txt 2>&1 || fail "one process"

case $launcher in
variables)
  echo "one launcher per host, as ms-swift is started: two ranks each"
  both env NNODES=2 NPROC_PER_NODE=2 MASTER_ADDR=10.77.0.1 "$train" run --parallel-method fsdp --out swift
  says host1.txt "the host of ranks 0 to 1 of 4, store at 10.77.0.1:29500"
  says host2.txt "the host of ranks 2 to 3 of 4, store at 10.77.0.1:29500"
  agrees swift
  echo "PAI-DLC's variant, where RANK and WORLD_SIZE count hosts"
  both sh -c 'RANK=$NODE_RANK exec env -u NODE_RANK WORLD_SIZE=2 NPROC_PER_NODE=2 MASTER_ADDR=host1 MASTER_PORT=4001 "$@"' \
    sh "$train" run --parallel-method ddp --out pai
  says host1.txt "as on PAI-DLC"
  agrees pai
  echo "a PyTorchJob, one rank per pod: rank 0 serves the store; Gloo on the interface that is named"
  both sh -c 'RANK=$NODE_RANK exec env -u NODE_RANK WORLD_SIZE=2 MASTER_ADDR=host1 MASTER_PORT=4002 \
    GLOO_SOCKET_IFNAME=cable$((NODE_RANK + 1)) "$@"' sh "$train" run --parallel-method ddp --out pods
  says host1.txt "rank 0 of 2, store at host1:4002 (RANK"
  agrees pods
  echo "an interface that has no address is refused"
  on host2 ip link add spare type veth peer name spare2
  got=0
  on host2 env GLOO_SOCKET_IFNAME=spare RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=4003 "$train" run \
    --parallel-method ddp >host2.txt 2>&1 || got=$?
  [ $got = 1 ] || fail "an interface without an address gave $got"
  says host2.txt "GLOO_SOCKET_IFNAME is 'spare', which is no interface with an address"
  echo "a host that goes away ends the ranks of the other, with the step"
  rm host1.txt host2.txt  # or the lines of the runs before would be waited for
  on host1 env NODE_RANK=0 NNODES=2 NPROC_PER_NODE=2 MASTER_ADDR=10.77.0.1 "$train" run --parallel-method fsdp \
    --steps 1000000 --timeout-seconds 5 --out gone >host1.txt 2>&1 &
  first=$!
  on host2 env NODE_RANK=1 NNODES=2 NPROC_PER_NODE=2 MASTER_ADDR=10.77.0.1 "$train" run --parallel-method fsdp \
    --steps 1000000 --timeout-seconds 5 --out gone >host2.txt 2>&1 &
  second=$!
  until grep -qs 'step 1/' host1.txt; do
    kill -0 $first || fail "the run ended by itself"
    sleep 0.1
  done
  start=$(date +%s)
  on host2 ip link set cable2 down
  got=0
  wait $first || got=$?
  [ $got = 1 ] || fail "host1 exited with $got after host2 was gone"
  got=0
  wait $second || got=$?
  [ $got = 1 ] || fail "host2 exited with $got after its cable was pulled"
  [ $(($(date +%s) - start)) -le 20 ] || fail "noticing took $(($(date +%s) - start)) s"
  says host1.txt "in step"
  ;;
addresses)
  # refuses SECONDS TEXT COMMAND...: both hosts end within so long, and both say TEXT
  refuses() {
    limit=$1 text=$2
    shift 2
    start=$(date +%s)
    on host1 env NODE_RANK=0 "$@" >host1.txt 2>&1 &
    first=$!
    got=0
    on host2 env NODE_RANK=1 "$@" >host2.txt 2>&1 || got=$?
    [ $got != 0 ] || fail "host2 did not refuse"
    ! wait $first || fail "host1 did not refuse"
    [ $(($(date +%s) - start)) -le "$limit" ] || fail "it took $(($(date +%s) - start)) s to say '$text'"
    says host1.txt "$text"
    says host2.txt "$text"
  }
  echo "each host's own name leads to 127.0.1.1, as Debian's installer writes it"
  for number in 1 2; do
    other=$((3 - number))
    # Above 127.: of two addresses Gloo has the lower one listen, so a loopback beside 10.77.0.1 works by luck.
    on host$number ip address add 192.168.77.$number/24 dev cable$number
    printf '127.0.0.1 localhost\n127.0.1.1 host%s\n192.168.77.%s host%s\n' $number $other $other >names$number
    on host$number mount --bind "$work/names$number" /etc/hosts
  done
  both env NNODES=2 NPROC_PER_NODE=2 MASTER_ADDR=host1 "$train" run --parallel-method fsdp --out named
  says host1.txt "store at host1:29500"
  agrees named
  both sh -c 'RANK=$NODE_RANK exec env -u NODE_RANK WORLD_SIZE=2 MASTER_ADDR=host1 MASTER_PORT=4010 "$@"' sh \
    "$train" run --parallel-method ddp --out own
  agrees own
  echo "an IPv6 address, in brackets as people write it"
  on host1 ip -6 address add fd94::1/64 dev cable1 nodad
  on host2 ip -6 address add fd94::2/64 dev cable2 nodad
  both env NNODES=2 NPROC_PER_NODE=1 MASTER_ADDR='[fd94::1]' "$train" run --parallel-method ddp --out six
  says host1.txt "store at fd94::1:29500"
  agrees six
  echo "the same network of its own on each host, as docker0 is, and a loopback that is asked for"
  for host in host1 host2; do
    on $host ip link add docker0 type veth peer name inside
    on $host ip address add 172.17.0.1/16 dev docker0
    on $host ip link set docker0 up
    on $host ip link set inside up
  done
  refuses 20 "are on different hosts and offer the others one address, 172.17.0.1, of GLOO_SOCKET_IFNAME 'docker0'" \
    env NNODES=2 NPROC_PER_NODE=1 MASTER_ADDR=10.77.0.1 GLOO_SOCKET_IFNAME=docker0 "$train" run --parallel-method ddp
  refuses 20 "listens on the loopback, as GLOO_SOCKET_IFNAME says" \
    env NNODES=2 NPROC_PER_NODE=1 MASTER_ADDR=10.77.0.1 GLOO_SOCKET_IFNAME=lo "$train" run --parallel-method ddp
  echo "NCCL's form of interfaces, and a port that Kubernetes made"
  refuses 20 "GLOO_SOCKET_IFNAME is '^docker0,lo'; expected names of interfaces" \
    env NNODES=2 NPROC_PER_NODE=1 MASTER_ADDR=10.77.0.1 GLOO_SOCKET_IFNAME=^docker0,lo "$train" run --parallel-method ddp
  refuses 20 "which Kubernetes sets in each pod beside a service of that name ('master')" \
    env NNODES=2 NPROC_PER_NODE=1 MASTER_ADDR=10.77.0.1 MASTER_PORT=tcp://10.0.0.1:29500 "$train" run
  echo "tasks of a launcher that is not known do not train alone"
  refuses 20 "so flux run started this process as one of several" \
    sh -c 'exec env -u NODE_RANK FLUX_TASK_RANK=$NODE_RANK FLUX_JOB_SIZE=2 "$@"' sh "$train" run
  ;;
torchrun)
  echo "torchrun on two hosts"
  both sh -c 'exec "$0" --no-python --nnodes 2 --node_rank $NODE_RANK --nproc_per_node 2 --master_addr 10.77.0.1 \
    --master_port 4000 "$@"' "$torchrun" "$train" run --parallel-method fsdp --out torchrun
  says host1.txt "rank 0 of 4, store at 10.77.0.1:4000 served by the launcher (torchrun: "
  agrees torchrun
  ;;
mpirun)
  need mpirun
  # What mpirun would call ssh for: the host's name, then the command.
  printf '#!/bin/sh\nhost=$1\nshift\nexec nsenter -t "$(cat "%s/$host")" --net --uts --mount -- sh -c "$*"\n' "$kHosts" \
    >agent.sh
  chmod +x agent.sh
  # mpirun HOST:SLOTS... -- OPTIONS COMMAND
  start_mpi() {
    hosts=$1
    shift
    on host1 mpirun --allow-run-as-root --mca plm_rsh_agent "$work/agent.sh" --mca oob_tcp_if_include 10.77.0.0/24 \
      --host "$hosts" --oversubscribe --bind-to none "$@" >mpi.txt 2>&1
  }
  echo "Open MPI's mpirun on two hosts, told where rank 0 is"
  start_mpi host1:2,host2:2 -np 4 -x MASTER_ADDR=10.77.0.1 "$train" run --parallel-method fsdp --out "$work/mpi" ||
    fail "mpirun"
  says mpi.txt "(mpirun of Open MPI: OMPI_COMM_WORLD_SIZE"
  says mpi.txt "rank 0 of 4, store at 10.77.0.1:"
  agrees mpi
  echo "the same without being told: refused with what to say"
  ! start_mpi host1:2,host2:2 -np 4 "$train" run --parallel-method fsdp --out "$work/mpi2" || fail "mpirun guessed"
  says mpi.txt "MASTER_ADDR is not set; say where rank 0 runs: mpirun -x MASTER_ADDR=ADDRESS"
  echo "on one host nothing has to be said"
  start_mpi host1:2 -np 2 "$train" run --parallel-method ddp --out "$work/mpi3" || fail "mpirun on one host"
  says mpi.txt "rank 0 of 2, store at 127.0.0.1:"
  agrees mpi3
  ;;
srun)
  . "$support/slurm_nodes.sh"
  echo "srun on two hosts: two tasks on one, one on the other"
  on host1 srun -N2 -n4 --ntasks-per-node=2 -O "$train" run --parallel-method fsdp --out "$work/slurm" >srun.txt 2>&1 ||
    fail "srun"
  says srun.txt "rank 0 of 4, store at host1:"
  says srun.txt "(srun: SLURM_STEP_ID"
  agrees slurm
  echo "torchrun inside srun: torchrun counts"
  on host1 srun -N2 -n2 sh -c 'exec "$0" --no-python --nnodes 2 --node_rank $SLURM_NODEID --nproc_per_node 2 \
    --master_addr host1 --master_port 4000 "$@"' "$torchrun" "$train" run --parallel-method ddp --out "$work/inside" \
    >srun.txt 2>&1 || fail "torchrun inside srun"
  says srun.txt "rank 0 of 4, store at host1:4000 served by the launcher (torchrun: "
  agrees inside
  echo "a batch script is no rank, its srun is"
  printf '#!/bin/sh\n"%s" run --out "%s/script" && srun -n2 "%s" run --parallel-method ddp --out "%s/step"\n' \
    "$train" "$work" "$train" "$work" >job.sh
  on host1 sbatch --wait -N1 -n2 -O -o "$work/sbatch.txt" job.sh >submit.txt 2>&1 || fail "sbatch"
  says sbatch.txt "single process"
  says sbatch.txt "rank 0 of 2, store at 127.0.0.1:"
  agrees script
  agrees step
  echo "a job that Slurm tells to end saves, is put back into the queue by its script, and goes on"
  cat >requeue.sh <<SCRIPT
#!/bin/sh
srun -n2 "$train" run --parallel-method ddp --steps "\$(cat "$work/steps")" --checkpoint-folder "$work/saved" \
  --out "$work/requeued"
code=\$?
[ \$code -eq 143 ] && scontrol requeue \$SLURM_JOB_ID
exit \$code
SCRIPT
  echo 1000000 >steps
  job=$(on host1 sbatch --parsable --requeue --open-mode=append -N1 -n2 -O -o "$work/requeue.txt" requeue.sh) || fail "sbatch"
  # until_true SECONDS COMMAND...: waits until it succeeds
  until_true() {
    left=$(($1 * 5))
    shift
    until "$@"; do
      left=$((left - 1))
      [ $left -gt 0 ] || fail "waited in vain for: $*"
      sleep 0.2
    done
  }
  has() { grep -qs "$1" "$2"; }
  waits_for_its_time() { on host1 squeue -h -j "$job" -o '%T %r' | grep -q 'PENDING BeginTime'; }
  until_true 60 has '"step":5,' requeued/log.jsonl
  on host1 scancel --signal=TERM "$job" || fail "scancel"
  until_true 60 has '"finished": false' requeued/result.json
  says requeue.txt "told to end by SIGTERM: not finished, ended after step"
  done=$(sed -n 's/^ "steps": \([0-9]*\),$/\1/p' requeued/result.json)
  echo $((done + 3)) >steps
  until_true 60 waits_for_its_time  # two minutes, unless it is told otherwise; not at once, while the node knows its end
  on host1 scontrol update JobId="$job" StartTime=now+5 || fail "scontrol"
  until_true 60 has '"finished": true' requeued/result.json
  says requeue.txt "resuming after step $done"
  grep -q "\"steps\": $((done + 3))," requeued/result.json || fail "it did not go on to its end"
  ;;
*) fail "unknown launcher '$launcher'" ;;
esac
