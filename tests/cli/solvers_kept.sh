#!/bin/sh
# Solvers know more than their tables hold, and a checkpoint holds that, too: a run that goes on from one, with as many workers,
# ends with the bits of a run that was never interrupted; with more or fewer workers it ends at the same optimum. A signal
# ends it with a checkpoint.
# usage: solvers_kept.sh, or with a path: where ranks are processes
. "$(dirname "$0")/common.sh"
gzip -dc "$data/a9a/a9a.gz" | head -n 600 >few
awk '{ print (NR * 7 % 11) - 3 * ($2 ~ /^3/), $2, $3, $4 }' few >numbers # labels for squares, in two features and more

# same NAME WHAT: run NAME has the model and figures of run straight
same() {
    for key in model_hash clocks epochs objective gap; do
        [ "$(field "$1" $key)" = "$(field straight $key)" ] ||
            fail "$2: $key $(field "$1" $key) instead of $(field straight $key)"
    done
}
# near NAME WHAT: both runs ended as near to the optimum as they were to; a run whose passes round too coarsely for that, or that
# has many optima, ended near the other
near() {
    [ "$(field "$1" converged)" = "$(field straight converged)" ] || fail "$2: converged is $(field "$1" converged)"
    awk -v x="$(field "$1" objective)" -v y="$(field straight objective)" -v c="$(field straight converged)" \
        'BEGIN { d = x / y - 1; exit !(d * d < (c == "true" ? 4e-12 : 1e-4)) }' ||
        fail "$2: objective $(field "$1" objective) instead of $(field straight objective)"
}

# goes_on EVERY EPOCHS words...: a run that was cut short after EPOCHS, with as many workers and with others
goes_on() {
    every=$1 epochs=$2
    shift 2
    for workers in $counts; do
        rm -rf d
        works straight train "$@" --tolerance 1e-6 --json --quiet --workers $workers
        works first train "$@" --tolerance 1e-6 --json --quiet --workers $workers --checkpoint d --checkpoint-every $every --epochs $epochs
        [ "$(field straight epochs)" -gt $epochs ] || fail "$*, $workers: it ends after $(field straight epochs) epochs"
        works second train "$@" --tolerance 1e-6 --json --quiet --workers $workers --resume d
        same second "$*, by $workers"
        for others in $to; do
            works other train "$@" --tolerance 1e-6 --json --quiet --workers $others --resume d
            near other "$*, from $workers to $others"
            case " $* " in *" exact "*) same other "$*, exact, from $workers to $others" ;; esac
        done
        [ -n "${PLAIT_TEST_FULL:-}" ] || continue
        works whole train "$@" --tolerance 1e-6 --json --quiet --workers $workers --checkpoint d --checkpoint-every 2
        same whole "$*, by $workers with checkpoints"
    done
}

counts=2 to=3
[ -z "${PLAIT_TEST_FULL:-}" ] || counts="1 2 4" to="1 3"
if [ -n "${1:-}" ]; then
    PLAIT_MPIRUN=$1
    export PLAIT_MPIRUN
    for topology in ps allreduce; do
        for words in "--optimizer lbfgs" "--optimizer lbfgs --reduce exact" "--optimizer newton" "--optimizer cd --model hinge --l2 0.01"; do
            rm -rf d
            # shellcheck disable=SC2086
            {
                set -- --data few $words --topology $topology --tolerance 1e-6 --json --quiet
                works straight launch -n 3 -- "$PLAIT" train "$@"
                works first launch -n 3 -- "$PLAIT" train "$@" --checkpoint d --checkpoint-every 3 --epochs 5
                works second launch -n 3 -- "$PLAIT" train "$@" --resume d
                same second "processes, $topology, $words"
                works other train "$@" --workers 2 --resume d
                near other "processes to threads, $topology, $words"
            }
        done
    done
    finish
fi

topologies=ps
[ -z "${PLAIT_TEST_FULL:-}" ] || topologies="local allreduce ps hybrid"
for topology in $topologies; do
    goes_on 3 6 --data few --topology $topology --optimizer lbfgs                                    # by blocks of the Hessian
    goes_on 5 20 --data few --topology $topology --optimizer lbfgs --reduce exact                    # with vectors in tables
done
goes_on 5 30 --data few --optimizer lbfgs --l1 0.001 --l2 0.001                                      # OWL-QN
goes_on 9 30 --data few --optimizer lbfgs --model hinge                                              # a loss made sharper in stages
goes_on 9 30 --data few --optimizer lbfgs --model hinge --reduce exact
goes_on 5 20 --data few --optimizer lbfgs --hash-bits 18 --topology ps                               # pairs that share words
goes_on 2 3 --data numbers --model huber --optimizer lbfgs
goes_on 2 5 --data few --optimizer newton --topology ps # under stale policies, who reads what first is chance
goes_on 7 30 --data few --optimizer newton --model hinge --topology allreduce                       # models renewed when the loss is sharper
goes_on 7 20 --data few --optimizer newton --hash-bits 12 --topology allreduce                       # a limited memory, loose
goes_on 7 70 --data few --optimizer newton --hash-bits 12 --topology ps                              # ... and in step
gzip -dc "$data/digits/digits.csv.gz" | head -n 400 >digits.csv
goes_on 7 100 --data few --optimizer cd --model hinge --l2 0.01 --topology ps --consistency ssp:1    # turns, each behind a barrier
goes_on 7 200 --data digits.csv --label 65 --optimizer cd --model hinge --topology allreduce         # more classes
goes_on 7 15 --data few --model mlp --layers 3 --optimizer lbfgs --topology ps

# --- signals ----------------------------------------------------------------------------------------------------------

# stopped NAME words...: SIGTERM ends the run with a checkpoint; it goes on to the bits of a run that was not stopped
stopped() {
    rm -rf d m m.2
    "$PLAIT" train "$@" --checkpoint d --resume d --metrics m >out 2>err &
    pid=$!
    until_holds 300 says m '"epoch": 3[,}]' || fail "$*: no epoch ends"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 75 ] || fail "$*: exit $code, not 75: $(tail -n 3 err)"
    clock=$(sed -n 's/.*interrupted after clock \([0-9]*\),.*/\1/p' err)
    [ "$(ls d | tail -n 1)" = "$(printf 'checkpoint-%012d' "$clock")" ] || fail "$*: no checkpoint of clock $clock: $(ls d)"
}
for words in "--optimizer lbfgs --reduce exact --l1 0.0001 --l2 0" "--optimizer newton --hash-bits 14" "--optimizer cd --model hinge --l2 0.0001"; do
    # shellcheck disable=SC2086
    stopped --data few $words --tolerance 0 --workers 2 --topology ps --epochs 100000
done
finish
