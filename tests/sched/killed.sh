#!/bin/sh
# Scheduled jobs of four processes with two replicas, one of which is killed (SIGKILL) at some instant: the other three
# end well, and plait audit proves from the ranks' event logs that each step had all of its variables, each once. A
# death before the job is there ends it; one after its end leaves a log that is cut: both are counted, and few.
# usage: PLAIT=program killed.sh MPIRUN PROGRAM RUNS [FIRST_SEED]
set -eu
mpirun=$1 program=$2 runs=$3 seed=${4:-1}
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=60
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
last=$((seed + runs)) proven=0 other=0
while [ "$seed" -lt "$last" ]; do
    rm -f "$dir"/log.*
    timeout 600 "$mpirun" --with-ft ulfm --mca btl sm,tcp,self -n 4 "$program" processes "$seed" "$dir/log" >"$dir/said" 2>&1 || true
    well=$(grep -c 'ended well' "$dir/said") || true
    code=0
    "$PLAIT" audit --schedule "$dir"/log.* >"$dir/audit" 2>&1 || code=$?
    if [ "$well" -eq 3 ] && [ $code -eq 0 ] && grep -q '^1 worker died' "$dir/audit"; then
        "$PLAIT" audit "$dir"/log.* >"$dir/audit" 2>&1 || { cat "$dir/audit"; echo "seed $seed: the tables"; exit 1; }
        proven=$((proven + 1))
    elif [ "$well" -ge 3 ] && [ $code -eq 1 ] && grep -q 'is cut' "$dir/audit"; then
        other=$((other + 1))
    elif [ "$well" -eq 4 ] && [ $code -eq 0 ]; then
        other=$((other + 1))
    elif [ "$well" -eq 0 ] && grep -q '(plait_\(job\|table\|schedule\)_create,' "$dir/said"; then
        other=$((other + 1))
    else
        echo "seed $seed: $well of 3 ended well, the audit ended with $code"
        cat "$dir/audit" "$dir/said"
        exit 1
    fi
    seed=$((seed + 1))
done
echo "$runs runs: $proven proven with a death in a step, $other with one before or after"
[ $((proven * 2)) -ge "$runs" ]
