# SPDX-License-Identifier: Apache-2.0
# A real Slurm on the hosts of hosts.sh: each is a node, the first has the controller. Sourced after that one, in the test's
# own folder; needs its `on` and `fail`, and `work` and `need` of the test. Afterwards all are idle and SLURM_CONF is set.

need slurmctld; need slurmd; need munged; need srun
mkdir state
head -c 128 /dev/urandom >munge.key
chmod 400 munge.key
chmod 755 .
munged --force --foreground --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --seed-file="$work/munged.seed" --log-file="$work/munged.txt" >munged.out.txt 2>&1 &
cat >slurm.conf <<CONF
ClusterName=hosts
SlurmctldHost=host1(10.77.0.1)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/run-%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.txt
SlurmdLogFile=$work/slurmd-%n.txt
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CONF
for host in $kHostNames; do
  echo "NodeName=$host NodeAddr=10.77.0.${host#host} CPUs=$(nproc) State=UNKNOWN" >>slurm.conf
done
echo "PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4 State=UP" >>slurm.conf
export SLURM_CONF=$work/slurm.conf
on host1 slurmctld -D >slurmctld.out.txt 2>&1 &
for host in $kHostNames; do
  mkdir -p run-$host
  on $host slurmd -D -N $host >slurmd-$host.out.txt 2>&1 &
done
tries=0
until [ "$(on host1 sinfo -h -o '%D %t' 2>sinfo.txt)" = "${kHostCount:-2} idle" ]; do
  tries=$((tries + 1))
  [ $tries -lt 150 ] || fail "Slurm did not come up"
  sleep 0.2
done
