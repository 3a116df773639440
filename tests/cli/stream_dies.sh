#!/bin/sh
# One pass over files that are streamed (a folder always is), of which a rank is killed by SIGKILL: train --epochs 1 --replicas 2
# under plait launch. The heirs read the rest of its blocks, so under bsp with exact sums the model has the bits of the pass in
# which nobody died, with servers apart and with a spare, under ps and under allreduce, of weights and of counts; the audit finds
# every update once. A checkpoint of such a run is resumed to the same bits, by other numbers of ranks. Standard input is refused.
# usage: stream_dies.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

mkdir folder
for i in 1 2 3 4 5 6 7 8; do
    for k in 1 2 3 4 5 6 7 8 9 10; do cat part; done >folder/$i
done
weights="train --data folder --test part --epochs 1 --batch 4 --reduce exact --schedule constant --seed 3 --json"
counts="train --model bayes --data folder --test part --epochs 1 --batch 4 --reduce exact --json"
for topology in ps allreduce; do
    for what in weights counts; do
        eval "options=\$$what"
        # shellcheck disable=SC2154,SC2086
        works whole.$topology.$what launch -n 3 -- "$PLAIT" $options --topology $topology --quiet --out model
    done
done
[ "$(field whole.ps.weights model_hash)" = "$(field whole.allreduce.weights model_hash)" ] || fail "another model under allreduce"
json whole.ps.weights.out 'o["train_loss"] is None and o["clocks"] > 5000'

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
trains() { gone $pid || says m '"event": "clock"'; }

# dies NUMBER WHAT TOPOLOGY: returns 1 if the run had ended before
dies() {
    ranks="-n 3" more="--events log" size=3
    [ "$3" = allreduce ] || [ $(($1 % 3)) -ne 0 ] || ranks="-n 4" more="--servers 2" size=4
    [ $(($1 % 3)) -ne 1 ] || ranks="$ranks --spares 1" size=$((size + 1))
    [ $(($1 % 3)) -ne 2 ] || more="--checkpoint d --checkpoint-every $((700 + $1 * 37 % 900))"
    eval "options=\$$2"
    rm -rf m model model.done err run.out log.* d
    # shellcheck disable=SC2086
    "$PLAIT" launch $ranks -- "$PLAIT" $options --topology $3 --replicas 2 $more --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 trains || fail "run $1 ($2, $3): no clock ends"
    victim=$(draw $(($1 + 4444)) "$size")
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "run $1 ($2, $3) does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    for key in model_hash test_loss clocks; do
        [ $code -eq 0 ] && [ "$(field run $key)" = "$(field "whole.$3.$2" $key)" ] ||
            fail "run $1 ($2, $3) without rank $victim of $size: exit $code, $key $(field run $key): $(cat err)"
    done
    [ ! -e log.0 ] && [ ! -e log.1 ] || "$PLAIT" audit log.* >said 2>&1 || fail "run $1 ($2, $3): the audit: $(cat said)"
    if [ -d d ]; then
        # shellcheck disable=SC2086
        works again launch -n $((2 + $1 % 2)) -- "$PLAIT" $options --topology $3 --quiet --replicas $((1 + $1 / 2 % 2)) --resume d --out model.again
        [ "$(field again model_hash)" = "$(field "whole.$3.$2" model_hash)" ] || fail "run $1 ($2, $3), resumed: another model"
    fi
    grep -q '"ranks_lost": \['"$victim"'\]' model.done || return 1
    died=$((died + 1))
}

n=0 died=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1))
    what=weights topology=ps
    [ $((n % 4)) -ne 0 ] || what=counts
    [ $((n / 2 % 2)) -ne 0 ] || topology=allreduce
    in_time dies $n $what $topology
done

exits 2 '2 replicas with data from standard input are refused' stdin train --data - --epochs 1 --workers 2 --topology ps --replicas 2 <part

[ $died -ge "$runs" ] || fail "only $died of $runs were lost in the run"
echo "$runs runs, $died with a loss"
finish
