#!/bin/sh
# Jobs of five processes with two replicas of each shard, one of which is killed (SIGKILL) at some instant: the other four
# end well, with every update once. Over shared memory and TCP in turns; half of the jobs have two ranks that hold
# shards only. The audit proves each from the ranks' event logs, of which the dead one's ends where it died. (Who is killed
# after all workers have ended their 600 clocks has nobody to tell of it: then its log is merely cut.) Prints how long the longest clock
# took. Before the job and its table are there a death ends it, by its name on every rank: such runs are counted, and
# few.
# Every second job is started by plait launch, which must end with 0 for those four; the first of these lasts longer than
# launch waits for what hangs.
# usage: PLAIT=program killed.sh MPIRUN PROGRAM RUNS [FIRST_SEED]
set -eu
mpirun=$1 program=$2 runs=$3 seed=${4:-1}
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=200
log=$(mktemp) all=$(mktemp) events=$(mktemp -d)
trap 'rm -rf "$log" "$all" "$events"' EXIT
PLAIT_MPIRUN=$mpirun
export PLAIT_MPIRUN
last=$((seed + runs)) slow=slow early=0 proven=0 late=0
while [ "$seed" -lt "$last" ]; do
    way=sm,tcp,self
    [ $((seed / 2 % 2)) -eq 0 ] || way=tcp,self
    rm -f "$events"/log.*
    ended=0
    if [ $((seed % 2)) -eq 0 ]; then
        PLAIT_EVENTS=$events/log timeout 600 "$mpirun" -x PLAIT_EVENTS --with-ft ulfm --mca btl $way -n 5 "$program" processes "$seed" >"$log" 2>&1 || true
    else
        PLAIT_EVENTS=$events/log OMPI_MCA_btl=$way timeout 600 "$PLAIT" launch -n 5 -- "$program" processes "$seed" $slow >"$log" 2>&1 || ended=$?
        slow=
    fi
    well=$(grep -c ' well' "$log") || true
    if [ "$well" -eq 4 ] && [ $ended -ne 0 ]; then
        echo "seed $seed over $way: 4 of 4 ended well, and launch with $ended"
        cat "$log"
        exit 1
    fi
    if [ "$well" -eq 0 ] && [ "$(grep -c 'rank [0-4] on host .* has died' "$log")" -eq 4 ] &&
        grep -q '(plait_\(job\|table\)_create,' "$log"; then
        early=$((early + 1))
    elif [ "$well" -lt 4 ]; then
        echo "seed $seed over $way: $well of 4 ended well"
        cat "$log"
        exit 1
    else
        code=0
        "$PLAIT" audit "$events"/log.* >"$events/said" 2>&1 || code=$?
        if [ "$code" = 0 ]; then
            proven=$((proven + 1))
        elif [ "$code" = 1 ] && grep -q 'is cut' "$events/said" &&
            { [ "$well" = 5 ] || grep -q 'all workers had ended 600 clocks' "$events/said"; }; then
            late=$((late + 1))
        else
            echo "seed $seed over $way: the audit ended with $code"
            cat "$events/said" "$log"
            exit 1
        fi
    fi
    sed -n 's/.*longest clock \([0-9.]*\) ms/\1/p' "$log" >>"$all"
    seed=$((seed + 1))
done
sort -n "$all" | awk -v runs="$runs" -v early="$early" -v proven="$proven" -v late="$late" '{ v[NR] = $1 } END {
    printf "%d runs (%d died before the job was there, %d after its end): %d proven by the audit; ", runs, early, late, proven
    printf "longest clock, median %s ms, p99 %s ms\n",
           v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.99)]
    exit early * 5 > runs }'
