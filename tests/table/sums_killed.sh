#!/bin/sh
# Jobs of five processes whose tables are mirrors, with replicas: one or two of them are killed (SIGKILL) at some instants,
# and the others end well, with every update once. Over shared memory and TCP in turns. Before the job and its tables are
# there a death ends it on every rank (mpirun may cut off what some of them say): such runs are counted, and few.
# usage: sums_killed.sh MPIRUN PROGRAM RUNS [FIRST_SEED]
set -eu
mpirun=$1 program=$2 runs=$3 seed=${4:-1}
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=200
log=$(mktemp) all=$(mktemp)
trap 'rm -f "$log" "$all"' EXIT
last=$((seed + runs)) early=0
while [ "$seed" -lt "$last" ]; do
    way=sm,tcp,self
    [ $((seed % 2)) -eq 0 ] || way=tcp,self
    living=4 # as in sums_survive_test.c
    if [ $((seed % 3)) -eq 2 ] && [ $((seed % 4)) -ne 1 ]; then living=3; fi
    timeout 600 "$mpirun" --with-ft ulfm --mca btl $way -n 5 "$program" processes "$seed" >"$log" 2>&1 || true
    well=$(grep -c ' well' "$log") || true
    if [ "$well" -eq 0 ] && grep -q 'rank [0-4] on host .* has died.*(plait_\(job\|table\)_create,' "$log"; then
        early=$((early + 1))
    elif [ "$well" -lt "$living" ]; then
        echo "seed $seed over $way: $well of $living ended well"
        cat "$log"
        exit 1
    fi
    sed -n 's/.*longest clock \([0-9.]*\) ms/\1/p' "$log" >>"$all"
    seed=$((seed + 1))
done
sort -n "$all" | awk -v runs="$runs" -v early="$early" '{ v[NR] = $1 } END {
    printf "%d runs (%d died before the job was there); longest clock, median %s ms, p99 %s ms\n", runs, early,
           v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)]
    exit early * 5 > runs }'
