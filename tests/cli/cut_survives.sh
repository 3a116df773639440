#!/bin/sh
# Real processes of a cut net that die, and the run goes on without them: train --cut K --replicas 2, over shared memory and
# over TCP. A rank of a replica, drawn from a seed, is killed at an instant drawn from it: the other ranks of its replica end
# with it, and the living replicas take the rows over. Every run must end within its deadline with exit 0, without a
# restart, with its record, which names the whole replica as lost; its model must judge the test set as that of the run in
# which nobody died does (perceptrons with exact sums: have its bits), and the audit must prove the run, group by group. Of
# three replicas rows change hands.
#
# Then pairs of deaths, two epochs apart: of both replicas that had all shards, while a spare replica takes their place
# (launch --spares), or of two in three. Every other run writes checkpoints, and the newest goes on uncut to the same bits.
# usage: cut_survives.sh MPIRUN RUNS FULL_RUNS PAIRS FULL_PAIRS      FULL_: under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2 pairs=$4
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3 pairs=$5

digits="$data/digits/digits.csv.gz"
common="train --data $digits --label -1 --test $digits --seed 3 --json --topology ps --quiet"
mlp="$common --model mlp --layers 32,24,16 --reduce exact --micro-batches 2 --batch 300 --epochs 44"
cnn="$common --model cnn --layers 2,4 --batch 256 --micro-batches 2 --epochs 20"

draw() { awk -v seed="$1" -v below="$2" 'BEGIN { srand(seed); rand(); print int(rand() * below) }'; }
pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; } # the run has come so far, or has ended
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b <= 0.02 && b - a <= 0.02) }'; }

# one NUMBER NAME R K LAST WAY OPTIONS...: R replicas of K ranks; killed after an epoch of 1 .. LAST.
# Returns 1 if the run had ended before.
one() {
    n=$1 name=$2 replicas=$3 stages=$4 last=$5 way=$6
    shift 6
    rm -rf m model model.done err run.out log.*
    OMPI_MCA_btl=$way "$PLAIT" launch -n $((replicas * stages)) -- "$PLAIT" "$@" --cut "$stages" --replicas 2 --events log \
        --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$n" "$last"))))" || fail "run $n: no epoch ends"
    victim=$(draw $((n + 777)) $((replicas * stages)))
    sleep "0.0$(draw $((n + 4321)) 10)"
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    # (Beside two busy processes on 2 cores a clock of small messages over TCP takes seconds.)
    until_holds 300 gone $pid || { fail "run $n ($name, $way, rank $victim) does not end: $(cat err)"; kill -9 $pid; }
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
    grep -q '"ranks_lost": \[\]' model.done && return 1
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
        0) in_time one $n mlp 2 2 16 $way $mlp ;;
        1) in_time one $n mlp 2 2 16 $way $mlp --pipeline interleaved ;;
        2) in_time one $n cnn 2 2 10 $way $cnn ;;
        3) in_time one $n mlp 3 2 16 $way $mlp --balance dynamic ;;
    esac
done
# --- two deaths, one after the other ------------------------------------------------------------------------------------

epochs_of() { sed -n 's/.*"event": "epoch", "epoch": \([0-9]*\).*/\1/p' m 2>/dev/null | tail -n 1; }
passes() { gone $pid || { now=$(epochs_of) && [ "${now:-0}" -ge "$1" ]; }; }
lost_all() { # lost_all REPLICA: is each of its ranks named?
    for k in $(seq 0 $((stages - 1))); do
        says model.done "\"ranks_lost\": \[.*\b$((k * replicas + $1))\b" || return 1
    done
}

# two NUMBER R K SPARES WAY OPTIONS...: a rank of one replica, then one of another. Returns 1 if the run
# had ended before both were lost.
two() {
    n=$1 replicas=$2 stages=$3 spares=$4 way=$5 extra=
    shift 5
    rm -rf m model model.done err run.out log.* kept
    [ $((n % 2)) -eq 0 ] || extra="--checkpoint kept --checkpoint-every 15"
    # shellcheck disable=SC2086
    OMPI_MCA_btl=$way "$PLAIT" launch -n $((replicas * stages)) --spares "$spares" -- "$PLAIT" "$@" --cut "$stages" --replicas 2 \
        --events log --metrics m --out model $extra >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((1 + $(draw "$n" 6))))" || fail "pair $n: no epoch ends"
    first=$(draw $((n + 31)) "$replicas")
    kill -KILL "$(pid_of $(($(draw $((n + 5)) "$stages") * replicas + first)))" 2>/dev/null || true
    sleep "0.0$(draw $((n + 99)) 10)"
    until_holds 300 passes $(($(epochs_of) + 2)) || fail "pair $n: no epoch ends after the first death: $(cat err)"
    next=$(((first + 1 + $(draw $((n + 77)) $((replicas - 1)))) % replicas))
    kill -KILL "$(pid_of $(($(draw $((n + 15)) "$stages") * replicas + next)))" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "pair $n does not end: $(cat err)"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    what="pair $n ($replicas x $stages, $spares spares, $way)"
    [ $code -eq 0 ] && [ -s model.done ] || { fail "$what: exit $code: $(cat err)"; return; }
    [ "$(field run model_hash)" = "$(field "mlp2" model_hash)" ] || fail "$what: another model"
    "$PLAIT" audit log.* >said 2>&1 || fail "$what: the audit: $(cat said)"
    grep -q restart err && fail "$what was restarted: $(cat err)"
    lost_all $first && lost_all $next || return 1
    twice=$((twice + 1))
    [ -n "$extra" ] || return 0
    # shellcheck disable=SC2086
    works on $mlp --workers 1 --resume kept
    [ "$(field on model_hash)" = "$(field mlp2 model_hash)" ] || fail "$what: its checkpoint goes on to another model"
}

i=0 twice=0
while [ $i -lt "$pairs" ]; do
    i=$((i + 1)) way=sm,tcp,self
    [ $((i % 3)) -ne 0 ] || way=tcp,self
    # shellcheck disable=SC2086
    case $((i % 3)) in
        0) in_time two $i 3 2 0 $way $mlp ;;
        *) in_time two $i 2 2 2 $way $mlp ;;
    esac
done
[ $twice -ge $pairs ] || fail "only $twice of $pairs runs lost both replicas"

[ $died -ge $runs ] || fail "only $died of $runs were lost in the run"
[ $((whole * 2)) -ge $died ] || fail "only $whole of $died lost their whole replica"
echo "$runs runs, $died with a loss, $whole of a whole replica; $pairs pairs of deaths, $twice of whole replicas"
finish
