#!/bin/sh
# Four processes, of which one dies or is stopped: the other three must each have seen what they had to see, and over
# each of the ways that MPI has here, shared memory and TCP.
# usage: deaths.sh MPIRUN RANKS SCENARIO [apart]
set -eu
mpirun=$1 ranks=$2 scenario=$3
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
want=3 ways="sm,tcp,self tcp,self"
[ "$scenario" != frozen ] || want=4 ways=tcp,self # it goes on at last; what a long test would show twice it shows once
for way in $ways; do
    : >"$log"
    timeout 600 sh "$(dirname "$0")/mpirun.sh" "$mpirun" --with-ft ulfm --mca btl $way -n 4 \
        sh -c '"$@"; code=$?; [ $code -ne 0 ] || echo saw it; [ $code -le 128 ] || kill -$((code - 128)) $$' sh "$ranks" "$scenario" "$@" \
        >"$log" 2>&1 || true
    n=$(grep -c 'saw it' "$log") || true
    [ "$n" -eq $want ] || {
        echo "$scenario over $way: $n of $want saw it"
        cat "$log"
        exit 1
    }
done
