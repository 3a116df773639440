#!/bin/sh
# A real Slurm of three nodes on this machine: srun with PMIx, its talk, srun without PMIx, plait launch inside an
# allocation, and the script of docs/clusters.md, which is asked to stop, goes back into the queue and ends its work.
# Needs root, slurmctld, slurmd, munge and libpmix2.
# usage: slurm.sh
. "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "Slurm's daemons need root"
PATH=$PATH:/usr/sbin
for tool in slurmctld slurmd srun sbatch salloc munged munge; do
    command -v $tool >/dev/null || skip "there is no $tool: apt-get install slurmctld slurmd slurm-client munge libpmix2"
done
find /usr/lib -name 'libpmix.so.2' 2>/dev/null | grep -q . || skip "there is no libpmix2, which srun --mpi=pmix loads"

# --- the cluster -------------------------------------------------------------------------------------------------
chmod 755 "$scratch"
mkdir -p state spool/n1 spool/n2 spool/n3 fs.n1 fs.n2 fs.n3
cat >slurm.conf <<END
ClusterName=plait
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=26917
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool/%n
SlurmdPidFile=$scratch/slurmd.%n.pid
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdLogFile=$scratch/slurmd.%n.log
SlurmctldLogFile=$scratch/slurmctld.log
TmpFS=$scratch/fs.%n
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=26921 CPUs=2 State=UNKNOWN
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=26922 CPUs=2 State=UNKNOWN
NodeName=n3 NodeHostname=localhost NodeAddr=127.0.0.1 Port=26923 CPUs=2 State=UNKNOWN
PartitionName=p Nodes=n1,n2,n3 Default=YES State=UP
END
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >cgroup.conf
SLURM_CONF=$scratch/slurm.conf
export SLURM_CONF
unset PLAIT_MPIRUN
undo() {
    scancel --user root 2>/dev/null || true
    until_holds 40 is_empty || true
    daemons=$(cat slurmd.n?.pid slurmctld.pid munge/pid 2>/dev/null) || true
    # shellcheck disable=SC2086
    kill $daemons 2>/dev/null || true
    until_holds 120 are_gone || true
    cd /
    rm -rf "$scratch"
}
is_empty() { [ -z "$(squeue -h 2>/dev/null)" ]; }
are_gone() {
    for daemon in $daemons; do gone "$daemon" || return 1; done
}
trap undo EXIT
trap 'exit 1' INT TERM
mkdir munge
head -c 128 /dev/urandom >munge/key
chown -R munge munge
chmod 700 munge/key
chmod 755 munge
setpriv --reuid munge --regid munge --clear-groups munged --key-file="$scratch/munge/key" --socket="$scratch/munge/socket" \
    --pid-file="$scratch/munge/pid" --log-file="$scratch/munge/log" --seed-file="$scratch/munge/seed" ||
    skip "munged does not start here"
slurmctld -c
for node in n1 n2 n3; do slurmd -N $node; done
are_idle() { [ "$(sinfo -h -o '%t %D' 2>/dev/null)" = "idle 3" ]; }
until_holds 300 are_idle || { fail "Slurm does not come up: $(sinfo 2>&1)"; tail -n 3 slurmctld.log slurmd.n1.log; finish; }
srun --mpi=list 2>&1 | grep -q pmix || skip "this Slurm has no PMIx"

# --- srun ----------------------------------------------------------------------------------------------------------
code=0
srun -N2 -n2 --mpi=pmix "$PLAIT" train --data part --epochs 2 --quiet --out two.model >two.out 2>two.err || code=$?
[ $code -eq 0 ] && [ -s two.model.done ] || fail "two ranks by srun: exit $code: $(cat two.err)"
[ -s two.err ] && fail "two ranks by srun: MPI says $(wc -l <two.err) lines, such as: $(head -n 3 two.err)"
code=0
srun -N2 -n2 "$PLAIT" train --data part --quiet >none.out 2>none.err || code=$?
[ $code -eq 2 ] || fail "without PMIx: exit $code instead of 2"
grep -q 'srun --mpi=pmix' none.err || fail "without PMIx the remedy is not told: $(cat none.err)"
code=0
salloc -N2 --ntasks-per-node=2 "$PLAIT" launch -n 4 -- plait train --data part --epochs 2 --quiet --out four.model >four.out 2>four.err || code=$?
[ $code -eq 0 ] && [ -s four.model.done ] || fail "plait launch in an allocation: exit $code: $(cat four.err)"

# --- the page's script: asked to stop, requeued, done -----------------------------------------------------------------
page=${PLAIT_SOURCE_DIR:?}/docs/clusters.md
sed -n '/^#!\/bin\/bash/,/^```/{/^```/!p;}' "$page" >job.sh
[ "$(grep -c . job.sh)" -ge 8 ] || fail "docs/clusters.md has no script any more"
PATH=$(dirname "$PLAIT"):$PATH
cp part a9a
sed -i 's/--epochs 50/--epochs 400000/; s/--checkpoint-every 60s/--checkpoint-every 100/' job.sh
job=$(sbatch --parsable job.sh) || fail "the page's script is not accepted"
has_saved() { "$PLAIT" checkpoint list a9a.saved 2>/dev/null | grep -q checkpoint-; }
until_holds 300 has_saved || { fail "the page's script writes no checkpoint: $(cat plait.log 2>&1)"; finish; }
scancel --signal=TERM "$job"
is_requeued() { scontrol show job "$job" | grep -q 'JobState=PENDING.*'; }
until_holds 300 is_requeued || fail "the job is not back in the queue: $(scontrol show job "$job" | head -n 5)"
grep -q 'going on\|to go on' plait.log || fail "no word of going on: $(tail -n 5 plait.log)"
newest() { "$PLAIT" checkpoint list a9a.saved 2>/dev/null | grep -o 'checkpoint-[0-9]*' | sort | tail -n 1; }
saved=$(newest)
# Slurm refuses a second life that begins before the first has been cleaned away.
scontrol update jobid="$job" StartTime=now+15
goes_on() { [ "$(newest)" != "$saved" ] && [ "$(newest | tr -dc 0-9)" -gt "$(echo "$saved" | tr -dc 0-9)" ]; }
until_holds 180 goes_on || fail "the requeued job does not go on: $(scontrol show job "$job" | head -n 5; tail -n 5 plait.log)"
[ "$(grep -c 'the run begins' plait.log)" -eq 1 ] || fail "a life other than the first begins anew: $(grep 'the run begins' plait.log)"
scancel "$job"
finish
