#!/bin/sh
# A program opens an event log by plait/events.h, and `plait audit` proves its consistency and its schedule from it. A wrong
# promise is refuted, so the log has what the proof needs.
# usage: schedule.sh EXAMPLE SIM [MPIRUN]        SIM: yes or no
set -eu
here=$(cd "$(dirname "$0")" && pwd)
example=$1 sim=$2 mpirun=${3:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
    echo "$*" >&2
    exit 1
}
proven() {
    "$PLAIT" audit --schedule "$@" >said 2>&1 || fail "$*: $(cat said)"
    grep -q '^3000 steps of 3 workers' said || fail "$*: not all steps are in the log: $(cat said)"
}

for topology in local ps allreduce; do
    "$example" $topology threads 3 $topology.events >out || fail "$topology: $(cat out)"
    proven $topology.events
done
code=0
"$PLAIT" audit --schedule --as async local.events >said 2>&1 || code=$?
[ $code -eq 0 ] || fail "async, which promises less than bsp: $(cat said)"
code=0
"$PLAIT" audit --schedule --as ssp:2 local.events >said 2>&1 || code=$?
[ $code -eq 4 ] || fail "neighbours that move in steps up to two apart conflict under ssp:2, exit $code: $(cat said)"
if [ "$sim" = yes ]; then
    "$example" ps sim 3 sim.events >out || fail "sim: $(cat out)"
    proven sim.events
fi
if [ -n "$mpirun" ]; then
    sh "$here/../mpi/mpirun.sh" "$mpirun" -n 3 "$example" ps mpi 3 mpi.events >out 2>&1 || fail "mpi: $(cat out)"
    proven mpi.events.0 mpi.events.1 mpi.events.2
fi
"$example" local threads 3 nowhere/log >out 2>&1 && fail "a log in a folder that is not there"
grep -q nowhere/log out || fail "not named: $(cat out)"
