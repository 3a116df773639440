#!/bin/sh
# Real processes of which one is killed, under every policy that keeps two replicas, with filters on messages, and where sums go
# on (allreduce): a worker, or a
# rank that is a worker and a server, drawn from a seed. Every run must end with exit 0, without a restart, with its record, all
# clocks, a model that is about as good as that of the run in which nobody died, and the audit must find no update lost or
# doubled; so it is of a net, one table of which applies updates at once. Under bsp with filters without loss, and exact sums,
# the model has the bits of the run in which nobody died, also where blocks change hands.
# usage: copies_die.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

train="train --data part --test part --batch 20 --epochs 120 --schedule constant --seed 3 --json --quiet"

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; } # the run has come so far, or has ended
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b <= 0.05) }'; }

# shellcheck disable=SC2086
works straight $train --topology ps --workers 3 --reduce exact --out model
bits=$(field straight model_hash) loss=$(field straight test_loss)

# one NUMBER OPTIONS...: returns 1 if it came too late: its log is cut then, and nobody tells why
one() {
    n=$1 topology="--topology ps"
    shift
    case "$*" in *--topology*) topology="" ;; esac
    rm -rf m model model.done err run.out log.*
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 3 -- "$PLAIT" $train $topology "$@" --replicas 2 --events log --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$n" 60))))" || fail "run $n ($*): no epoch ends: $(cat err)"
    victim=$(draw $((n + 999)) 3)
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "run $n ($*) does not end: $(cat err)"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ -s model.done ] && near "$(field run test_loss)" "$loss" ||
        fail "run $n ($*, rank $victim): exit $code, loss $(field run test_loss), not $loss: $(cat err)"
    case "$*" in *exact*) [ "$(field run model_hash)" = "$bits" ] || fail "run $n ($*, rank $victim): another model" ;; esac
    grep -q restart err && fail "run $n was restarted: $(cat err)"
    grep -q '"ranks_lost": \['"$victim"'\]' model.done || return 1
    died=$((died + 1))
    "$PLAIT" audit log.* >said 2>&1 || fail "run $n ($*, rank $victim): the audit: $(cat said)"
    case "$*" in
    *fp16* | *onebit* | *fixed8* | *topk* | *randk* | *significant*) says m 'what its filters kept back .* is lost' ;;
    *downpour*) says m 'what it had gathered since its last push is lost' ;;
    *local-sgd*) says m 'what its mirror had moved since the last average is lost' ;;
    *) ! says m 'is lost' ;;
    esac || fail "run $n ($*): what is lost with rank $victim: $(cat m)"
}

n=0 died=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1))
    case $((n % 21)) in
    1) in_time one $n --reduce exact --filter key-cache,key-delta,zstd ;;
    2) in_time one $n --consistency vap:0.5 ;;
    3) in_time one $n --filter fp16 ;;
    4) in_time one $n --consistency downpour:4:3 ;;
    5) in_time one $n --consistency sequential --filter key-cache ;;
    6) in_time one $n --consistency bounded-delay:2 --filter onebit ;;
    7) in_time one $n --consistency asp:4:16 --filter fixed8 ;;
    8) in_time one $n --consistency async --filter key-cache,topk:0.2 ;;
    9) in_time one $n --consistency local-sgd:5 ;;
    10) in_time one $n --filter significant:1e-4 --consistency async ;;
    11) in_time one $n --consistency essp:2 --filter zstd ;;
    12) in_time one $n --filter randk:0.5 --consistency async ;;
    13) in_time one $n --topology allreduce --reduce exact ;;
    14) in_time one $n --topology allreduce --filter onebit ;;
    15) in_time one $n --topology allreduce --filter topk:0.2 ;;
    16) in_time one $n --topology allreduce --reduce exact --filter key-cache,key-delta,zstd ;;
    17) in_time one $n --topology allreduce --consistency bounded-delay:2 --filter fp16 ;;
    18) in_time one $n --topology allreduce --consistency local-sgd:5 ;;
    19) in_time one $n --reduce exact --balance dynamic ;;
    20) in_time one $n --topology allreduce --reduce exact --balance dynamic ;;
    0) in_time one $n --model mlp --layers 8 --table w1:consistency=ssp:2 ;;
    esac
done
[ $died -ge $runs ] || fail "only $died of $runs were lost in the run"
echo "$runs runs, $died with a loss"
finish
