#!/bin/sh
# Real processes of a cut net that die, and the run goes on without them: train --cut K --replicas 2, over shared memory and
# over TCP. A rank of a replica, drawn from a seed, is killed at an instant drawn from it: the other ranks of its replica end
# with it, and the living replicas take the rows over. Every run must end within its deadline with exit 0, without a
# restart, with its record, which names the whole replica as lost; its model must judge the test set as that of the run in
# which nobody died does (perceptrons with exact sums: have its bits), and the audit must prove the run, group by group.
# usage: cut_survives.sh MPIRUN RUNS FULL_RUNS      the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

digits="$data/digits/digits.csv.gz"
common="train --data $digits --label -1 --test $digits --seed 3 --json --topology ps --quiet"
mlp="$common --model mlp --layers 32,24,16 --reduce exact --micro-batches 2 --batch 300 --epochs 44"
cnn="$common --model cnn --layers 2,4 --batch 256 --micro-batches 2 --epochs 20"

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; } # the run has come so far, or has ended
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b <= 0.02 && b - a <= 0.02) }'; }

# one NUMBER NAME R K LAST WAY OPTIONS...: R replicas of K ranks; killed after an epoch of 1 .. LAST
one() {
    n=$1 name=$2 replicas=$3 stages=$4 last=$5 way=$6
    shift 6
    rm -rf m model model.done err run.out log.*
    OMPI_MCA_btl=$way "$PLAIT" launch -n $((replicas * stages)) -- "$PLAIT" "$@" --cut "$stages" --replicas 2 --events log \
        --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 60 reaches $((1 + $(draw "$n" "$last"))) || fail "run $n: no epoch ends"
    victim=$(draw $((n + 777)) $((replicas * stages)))
    sleep "0.0$(draw $((n + 4321)) 10)"
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 60 gone $pid || { fail "run $n ($name, $way, rank $victim) does not end: $(cat err)"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] && [ -s model.done ] || { fail "run $n ($name, rank $victim, $way): exit $code: $(cat err)"; return; }
    if [ "$name" = mlp ]; then
        [ "$(field run model_hash)" = "$(field "mlp$replicas" model_hash)" ] || fail "run $n (rank $victim): another model"
    fi
    near "$(field run test_loss)" "$(field "$name$replicas" test_loss)" ||
        fail "run $n ($name, rank $victim): loss $(field run test_loss) instead of $(field "$name$replicas" test_loss)"
    "$PLAIT" audit log.* >said 2>&1 || fail "run $n ($name, rank $victim): the audit: $(cat said)"
    grep -q restart err && fail "run $n was restarted: $(cat err)"
    grep -q '"ranks_lost": \[\]' model.done && return
    died=$((died + 1))
    says model.done "\"ranks_lost\": \[.*\b$victim\b" || fail "run $n (rank $victim): $(cat model.done)"
    all=yes # but for a death after the last clock
    for k in $(seq 0 $((stages - 1))); do
        says model.done "\"ranks_lost\": \[.*\b$((k * replicas + victim % replicas))\b" || all=no
    done
    [ $all = no ] || whole=$((whole + 1))
}

# The same runs in which nobody dies, uncut: a cut net has their bits, if sums are exact.
# shellcheck disable=SC2086
for r in 2 3; do
    works mlp$r $mlp --workers $r
    works cnn$r $cnn --workers $r
done

n=0 died=0 whole=0
while [ $n -lt "$runs" ]; do
    n=$((n + 1)) way=sm,tcp,self
    [ $((n % 2)) -eq 0 ] || way=tcp,self
    # shellcheck disable=SC2086
    case $((n % 4)) in
        0) one $n mlp 2 2 16 $way $mlp ;;
        1) one $n mlp 2 2 16 $way $mlp --pipeline interleaved ;;
        2) one $n cnn 2 2 10 $way $cnn ;;
        3) one $n mlp 3 2 16 $way $mlp ;;
    esac
done
# Of those that came at the very end there may be a few.
[ $((died * 4)) -ge $((runs * 3)) ] || fail "only $died of $runs were lost in the run"
[ $((whole * 2)) -ge $died ] || fail "only $whole of $died lost their whole replica"
echo "$runs runs, $died with a loss, $whole of a whole replica"
finish
