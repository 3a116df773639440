#!/bin/sh
# Learners with state beside the tables, whose ranks die: train --model gbdt, forest and mf --replicas 2 under plait launch, a
# rank of which is killed (SIGKILL) while a tree grows or a block of items is moved. The others take over, and the model has the
# bits of the run in which nobody died: trees with columns of texts and rows held back, with sparse rows drawn anew for each
# round, with rankings and a validation set of its own, a forest with its judgement of rows left out, trees by features; factors
# by least squares and by steps. Trees by voting depend on who votes: their loss stays near. The audit proves each, and that no
# two steps on blocks conflicted. One that was frozen is told when it wakes. What cannot go on is refused.
# usage: learners_die.sh MPIRUN RUNS FULL_RUNS      of each kind; the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

awk 'function u() { s = (s * 16807) % 2147483647; return s / 2147483647 }
    BEGIN { s = 7; print "y,city,a,b,c,d,e" >"cities.csv"; for (i = 0; i < 1500; i++) {
        t = int(u() * 9); l = ""; v = ""; for (j = 0; j < 5; j++) { x[j] = u(); l = l sprintf(",%.3f", x[j]); v = v sprintf(" %d:%.3f", j + 1, x[j]) }
        z = 3 * x[0] * x[1] + x[2] + (t % 3) + 0.3 * u()
        print (z > 2.4) ",c" t l >"cities.csv"
        if (i % 20 == 0) q++
        printf "%d qid:%d%s\n", z, q, v >(q <= 60 ? "ranked" : "judged") } }'
dense="--model gbdt --data cities.csv --label y --epochs 40 --leaves 8 --validation 0.2"
sparse="--model gbdt --data $scratch/part --epochs 120 --subsample 0.7 --colsample 0.6 --grow depth --depth 4 --min-rows 5"
ranked="--model gbdt --loss ndcg --data ranked --validation judged --epochs 40 --leaves 6"
features="$dense --trees-by features"
voting="$dense --trees-by voting --elect 3"
forest="--model forest --data cities.csv --label y --epochs 25 --leaves 40"
awk 'BEGIN { s = 3; for (i = 0; i < 9000; i++) { s = (s * 16807) % 2147483647; u = s % 300; s = (s * 16807) % 2147483647
    print "u" u, "i" s % 80, 3 + sin(u) * cos(s % 80) } }' >ratings
solved="--model mf --data ratings --optimizer als --components 8 --epochs 150"
stepped="--model mf --data ratings --optimizer sgd --components 8 --epochs 120"

pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; }

# near NAME: is it about a model by voting? Then its loss is near that of run NAME.
near() {
    [ "$1" = voting ] || return 1
    awk -v x="$(field run validation_loss)" -v y="$(field "$1" validation_loss)" 'BEGIN { exit !(x > 0 && x < 1.05 * y) }' ||
        fail "$1: a loss of $(field run validation_loss) instead of $(field "$1" validation_loss)"
}

# dies NAME NUMBER words...: rank NUMBER mod 3 is killed; the model and its figures are those of run NAME. Returns 1 if the run
# had ended before.
dies() {
    name=$1 number=$2 victim=$(($2 % 3))
    shift 2
    rm -rf m model model.done log.*
    "$PLAIT" launch -n 3 -- "$PLAIT" train "$@" --topology $topology --json --quiet --replicas 2 --events log --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((number * 5 % 17 + 1)))" || fail "$name $number: no round ends"
    kill -KILL "$(pid_of $victim)" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "$name $number does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] || fail "$name $number: exit $code, $(cat err)"
    says model.done '"ranks_lost": \[\]' && return 1
    says model.done '"ranks_lost": \['$victim'\]' || fail "$name $number: $(cat model.done err)"
    says run.out '"ranks_lost": \['$victim'\]' || fail "$name $number: the record: $(cat run.out)"
    near "$name" || for key in model_hash train_loss validation_loss best_epoch oob_loss oob_accuracy; do
        [ "$(field run $key)" = "$(field "$name" $key)" ] || fail "$name $number: $key $(field run $key) instead of $(field "$name" $key)"
    done
    "$PLAIT" audit log.* >said 2>&1 || fail "$name $number: the audit: $(cat said)"
    [ "$name" != stepped ] || "$PLAIT" audit --schedule log.* >said 2>&1 || fail "$name $number: the audit: $(cat said)"
}

topology=ps number=0
for what in dense sparse ranked forest features voting solved stepped; do
    eval "words=\$$what"
    # shellcheck disable=SC2086
    case $what in # votes and steps are by worker, and users' factors are rounded in each of them if there are two replicas
    stepped | voting) works $what launch -n 3 -- "$PLAIT" train $words --topology ps --replicas 2 --quiet --json ;;
    *) works $what train $words --quiet --json ;;
    esac
    run=0
    while [ $run -lt "$runs" ]; do
        # shellcheck disable=SC2086
        in_time dies $what $number $words
        run=$((run + 1)) number=$((number + 1))
    done
done

# Where every worker has the tables, and sums go on without the dead.
topology=allreduce
# shellcheck disable=SC2086
{
    in_time dies dense 0 $dense
    in_time dies solved 1 $solved
}

# A rank is only frozen, and wakes when the others have ended: it hears that they took it for lost, although what they sent
# it before will never come whole, and ends no clock by itself.
freezes() {
    rm -rf m model model.done log.*
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 3 -- "$PLAIT" train $dense --topology ps --json --quiet --replicas 2 --heartbeat 5 --events log --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches 3 || fail "frozen: no round ends"
    frozen=$(pid_of 1)
    kill -STOP "$frozen" 2>/dev/null || true
    until_holds 300 [ -e model.done ] || fail "frozen: the others do not end"
    kill -CONT "$frozen" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "frozen: the run does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    [ $code -eq 0 ] || fail "frozen: exit $code, $(cat err)"
    says model.done '"ranks_lost": \[\]' && return 1
    says model.done '"ranks_lost": \[1\]' || fail "frozen: $(cat model.done err)"
    # It may see first that the others have ended: then it has lost the last replica.
    says err 'took this rank for lost' || says err 'held the last replica' || fail "the frozen rank is not told: $(cat err)"
    [ "$(field run model_hash)" = "$(field dense model_hash)" ] || fail "frozen: another model"
    "$PLAIT" audit log.* >said 2>&1 || fail "frozen: the audit: $(cat said)"
}
in_time freezes

# shellcheck disable=SC2086
{
    exits 2 "a schedule with two replicas.*nearest is bsp|nearest is bsp" refused train $stepped --workers 2 --topology ps --replicas 2 --consistency ssp:1
}
finish
