#!/bin/sh
# A rank of a net in stages is killed at an instant drawn from a seed, in simulated time (--cut 2 or 3 with --replicas 2): the
# others of its replica end with it, the rest end with exit 0 and the bits of the whole net, and the audit proves the run.
# PLAIT_TEST_FULL=1: 60 deaths.
. "$(dirname "$0")/common.sh"
runs=6
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=60
net="train --data $data/digits/digits.csv.gz --label -1 --seed 3 --topology ps --model mlp --layers 32,24,16 --reduce exact --batch 600
    --epochs 4 --quiet --json"
# shellcheck disable=SC2086
works whole $net
want=$(field whole model_hash)

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }

n=0 died=0
while [ $n -lt $runs ]; do
    n=$((n + 1)) stages=$((2 + n % 2)) replicas=2
    [ $((n % 4)) -ne 0 ] || replicas=3
    ranks=$((stages * replicas))
    victim=$(draw "$n" $ranks) at=$((4000 + $(draw $((n + 900)) 100000))) # when the job is there
    cluster $ranks "kill: {ranks: $victim, at: $at us}"
    rm -f log model.done
    # shellcheck disable=SC2086
    works cut $net --transport sim --cluster c.yaml --workers $ranks --cut $stages --replicas 2 --events log --out model
    [ "$(field cut model_hash)" = "$want" ] || fail "run $n, rank $victim of $replicas x $stages at $at us: another model"
    "$PLAIT" audit log >said 2>&1 || fail "run $n, rank $victim of $replicas x $stages at $at us: the audit: $(tail -n 1 said)"
    grep -q '"ranks_lost": \[[0-9]' model.done && died=$((died + 1))
done
[ $((died * 2)) -ge $runs ] || fail "only $died of $runs deaths came before the end"
echo "$runs runs, $died with a loss"
finish
