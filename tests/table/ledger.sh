#!/bin/sh
# Jobs of four processes, one of which is killed (SIGKILL) at some instant, and jobs of five with three replicas, two of which are
# killed at once, under pairs of settings that are drawn from all those that keep so many replicas: what the workers' own ledgers say was acknowledged is in the table at the end, once
# (tests/table/ledger.c says what is exact where). launch ends with 0. RUNS 0: each pair once.
# usage: PLAIT=program ledger.sh MPIRUN LEDGER REPLICAS RUNS FULL_RUNS [FIRST_SEED]      FULL_RUNS count under PLAIT_TEST_FULL
set -eu
PLAIT_MPIRUN=$1 program=$2 replicas=$3 runs=$4 seed=${6:-1}
export PLAIT_MPIRUN
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" pairs "$replicas" >"$work/pairs"
all=$(wc -l <"$work/pairs")
[ "$all" -ge 100 ] || { echo "only $all pairs keep $replicas replicas"; exit 1; }
[ "$runs" -gt 0 ] || runs=$all # each pair once
last=$((seed + runs)) died=0 failed=0
while [ "$seed" -lt "$last" ]; do
    # 7919 is a prime, so all pairs come before one comes again.
    pair=$(sed -n "$((seed * 7919 % all + 1))p" "$work/pairs")
    way=sm,tcp,self
    [ $((seed % 2)) -eq 0 ] || way=tcp,self
    mkdir "$work/run"
    code=0
    # shellcheck disable=SC2086
    OMPI_MCA_btl=$way timeout 600 "$PLAIT" launch -n $((replicas + 2)) -- "$program" live "$work/run" "$seed" $pair >"$work/said" 2>&1 || code=$?
    # shellcheck disable=SC2086
    "$program" judge "$work/run" "$seed" $pair >"$work/judged" 2>&1 || code=1
    # Who is killed after the work, while processes end, cannot tell launch that it had done it.
    if [ $code -ne 0 ] && ! { [ $code -eq 3 ] && grep -q 'it came too late' "$work/judged"; }; then
        echo "seed $seed, $pair, over $way: exit $code"
        cat "$work/judged" "$work/said"
        failed=$((failed + 1))
    fi
    ! grep -q 'one died\|two died' "$work/judged" || died=$((died + 1))
    rm -rf "$work/run"
    seed=$((seed + 1))
done
echo "$runs jobs of $all pairs with $replicas replicas, $died with a death, $failed failed"
[ $failed -eq 0 ] && [ $((died * 2)) -ge "$runs" ]
