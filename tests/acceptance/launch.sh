#!/bin/sh
# The same command under `plait launch` and with --workers; under mpirun itself too.
# usage: launch.sh MPIRUN
. "$(dirname "$0")/common.sh"
mpirun=$1

gzip -dc "$data/a9a/a9a.gz" | head -n 2000 >part
options="train --model logistic --data part --batch 200 --epochs 2 --topology ps --json"
# shellcheck disable=SC2086
{
    works threads $options --workers 4 --out threads
    works processes launch -n 4 -- "$PLAIT" $options --out processes
    code=0
    "$mpirun" -n 2 "$PLAIT" $options --out direct >direct.out 2>direct.err || code=$?
    [ $code -eq 0 ] || { fail "exit $code under mpirun"; tail -n 5 direct.err; }
    works stale launch -n 3 -- "$PLAIT" $options --consistency ssp:2
    works servers launch -n 3 -- "$PLAIT" $options --servers 1 --out servers
}
[ "$(field processes transport)" = mpi ] || fail "transport is $(field processes transport)"
[ "$(field processes workers)" = 4 ] || fail "workers is $(field processes workers)"
[ "$(field direct workers)" = 2 ] || fail "workers is $(field direct workers) under mpirun -n 2"
[ "$(field servers workers)" = 2 ] || fail "workers is $(field servers workers), 3 processes less 1 server"
[ "$(grep -c '"model_hash"' processes.out)" -eq 1 ] || fail "the record is printed $(grep -c '"model_hash"' processes.out) times"
same threads processes 1e-5
same threads direct 1e-5
same threads servers 1e-5
# shellcheck disable=SC2086
exits 2 'workers' count launch -n 2 -- "$PLAIT" $options --workers 3
# shellcheck disable=SC2086
exits 2 'local' local launch -n 2 -- "$PLAIT" train --model logistic --data part --topology local
finish
