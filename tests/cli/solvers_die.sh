#!/bin/sh
# Solvers whose ranks die: train --optimizer lbfgs, newton and cd (of hinge) --replicas 2 under plait launch, a rank of which is
# killed (SIGKILL) between two clocks or within one. The others take its rows over, and end at the optimum of the run in which
# nobody died, within --tolerance: workers of newton and cd, who remember something of each row, make their sums anew; lbfgs goes
# on with its vectors. The audit proves each run.
# usage: solvers_die.sh MPIRUN RUNS FULL_RUNS      of each kind; the last counts under PLAIT_TEST_FULL
. "$(dirname "$0")/common.sh"
PLAIT_MPIRUN=$1
export PLAIT_MPIRUN
runs=$2
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=$3

gzip -dc "$data/a9a/a9a.gz" >all
head -n 4000 all >some
sharper="--data some --model hinge --optimizer newton --tolerance 1e-6"
limited="--data some --optimizer newton --hash-bits 14 --tolerance 1e-6"
stale="--data some --optimizer newton --hash-bits 14 --tolerance 1e-6 --consistency ssp:2"
dual="--data some --model hinge --optimizer cd --l2 0.001 --tolerance 1e-4"
behind="--data some --model hinge --optimizer cd --l2 0.001 --tolerance 1e-4 --consistency ssp:1"
onservers="--data some --optimizer lbfgs --hash-bits 14 --l2 0.0001 --tolerance 1e-9"
onworkers="--data all --model hinge --optimizer lbfgs --tolerance 1e-7"

pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }
reaches() { gone $pid || says m "\"epoch\": $1[,}]"; }

# dies NAME NUMBER SPARES words...: rank NUMBER mod 3 is killed; the run ends where run NAME has ended. Returns 1 if the run had
# ended before.
dies() {
    name=$1 number=$2 spares=$3 victim=$(($2 % 3))
    shift 3
    rm -rf m model model.done log.*
    # shellcheck disable=SC2086
    "$PLAIT" launch -n 3 $spares -- "$PLAIT" train "$@" --topology ps --json --quiet --replicas 2 --events log --metrics m --out model >run.out 2>err &
    pid=$!
    until_holds 300 reaches "$(at $((number * 5 % 17 + 1)))" || fail "$name $number: no epoch ends"
    kill -KILL "$(pid_of $victim)" 2>/dev/null || true
    until_holds 300 gone $pid || { fail "$name $number does not end"; kill -9 $pid; }
    code=0
    wait $pid || code=$?
    says model.done '"ranks_lost": \[\]' && return 1
    [ $code -eq 0 ] && says model.done '"ranks_lost": \['$victim'\]' || fail "$name $number: exit $code, $(cat model.done err)"
    [ "$(field run converged)" = true ] || fail "$name $number: it does not converge"
    awk -v x="$(field run objective)" -v y="$(field "$name" objective)" -v t="$(echo "$*" | sed 's/.*--tolerance \([^ ]*\).*/\1/')" \
        'BEGIN { d = x / y - 1; exit !(d < 2 * t && d > -2 * t) }' ||
        fail "$name $number: objective $(field run objective) instead of $(field "$name" objective)"
    "$PLAIT" audit log.* >said 2>&1 || fail "$name $number: the audit: $(cat said)"
    [ "$name" != onservers ] || says said 'each call ran once' || fail "$name $number: the log tells of no call: $(cat said)"
}

number=0
for what in sharper limited stale dual behind onservers onworkers; do
    eval "words=\$$what"
    # shellcheck disable=SC2086
    works $what train $words --topology ps --workers 3 --quiet --json
    run=0
    while [ $run -lt "$runs" ]; do
        spares=
        [ $((number % 2)) -eq 0 ] || spares="--spares 1"
        # shellcheck disable=SC2086
        in_time dies $what $number "$spares" $words
        run=$((run + 1)) number=$((number + 1))
    done
done
finish
