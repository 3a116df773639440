#!/bin/sh
# Jobs of five processes with two copies of each shard, one of which is killed (SIGKILL) at some instant: the other four
# end well, with every update once. Over shared memory and TCP in turns; half of the jobs have two ranks that hold
# shards only. Prints how long the longest clock took. Before the job is there a death ends it: such a run is tried
# anew. usage: killed.sh MPIRUN PROGRAM RUNS [FIRST_SEED]
set -eu
mpirun=$1 program=$2 runs=$3 seed=${4:-1}
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=200
log=$(mktemp) all=$(mktemp)
trap 'rm -f "$log" "$all"' EXIT
last=$((seed + runs)) early=0
while [ "$seed" -lt "$last" ]; do
    way=sm,tcp,self
    [ $((seed / 2 % 2)) -eq 0 ] || way=tcp,self
    timeout 100 "$mpirun" --with-ft ulfm --mca btl $way -n 5 "$program" processes "$seed" >"$log" 2>&1 || true
    well=$(grep -c ' well' "$log") || true
    if [ "$well" -lt 4 ] && grep -q 'before the job was there' "$log"; then
        early=$((early + 1))
    elif [ "$well" -lt 4 ]; then
        echo "seed $seed over $way: $well of 4 ended well"
        cat "$log"
        exit 1
    fi
    sed -n 's/.*longest clock \([0-9.]*\) ms/\1/p' "$log" >>"$all"
    seed=$((seed + 1))
done
sort -n "$all" | awk -v runs="$runs" -v early="$early" '{ v[NR] = $1 } END {
    printf "%d runs (%d died before the job was there): longest clock, median %s ms, p99 %s ms\n", runs, early,
           v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)] }'
