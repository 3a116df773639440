#!/bin/sh
# kmeans, pca, bayes and gbdt under every pair that trains them, as plait help pairs lists the pairs, with 1, 2 and 4 workers on
# threads and on simulated hosts: the same bits where sums are exact, else the same figures. They go on after SIGKILL from
# their newest checkpoint, and without a rank that dies.
# usage: learner_pairs.sh yes|no (is there a simulator?) WORKERS..., or with the path of mpirun: where ranks are processes
. "$(dirname "$0")/common.sh"
here=$(cd "$(dirname "$0")" && pwd)
way=$1
shift
numbers=$*
gzip -dc "$data/digits/digits.csv.gz" >digits.csv
rows="--data digits.csv --label 65 --json --quiet"
bayes="train --model bayes $rows --batch 450"
pca="train --model pca $rows --components 6 --reduce exact"
wide="$pca --pca-solver randomised --power-passes 4"
kmeans="train --model kmeans $rows --clusters 5 --reduce exact --tolerance 0 --epochs 6"
gbdt="train --model gbdt $rows --epochs 2 --grow depth --depth 3 --subsample 0.7"
small="train --model kmeans $rows --clusters 5 --batch 300 --epochs 4 --tolerance 0"

works help help pairs
pairs_of() { awk -v model="$1" -v ranks="$2" -f "$here/pairs.awk" help.out; } # pairs_of MODEL threads|processes

count=0
# alike WHAT WANTED words...: the run has the bits of the run WANTED
alike() {
    about=$1 wanted=$(field "$2" model_hash)
    shift 2
    works other "$@"
    [ "$(field other model_hash)" = "$wanted" ] || fail "$about: model $(field other model_hash), not $wanted"
    count=$((count + 1))
}
# near WHAT KEY WANTED SHARE words...: its figure KEY is at most so much off
near() {
    about=$1 key=$2 wanted=$3 share=$4
    shift 4
    works other "$@"
    awk -v a="$(field other "$key")" -v b="$wanted" -v s="$share" \
        'BEGIN { d = a > b ? a - b : b - a; exit !(a != "" && d <= s * b) }' ||
        fail "$about: $key $(field other "$key"), not $wanted"
    count=$((count + 1))
}

# every TRANSPORT RANKS: all pairs of these ranks with so many workers
every() {
    for workers in $numbers; do
        set -- "$1" "$2" "--transport $1 --workers $workers"
        pairs_of bayes "$2" | while read -r topology consistency; do echo "bayes $topology $consistency"; done >pairs
        pairs_of pca "$2" | sed 's/^/pca /' >>pairs
        pairs_of pca "$2" | sed 's/^/wide /' >>pairs
        pairs_of pca "$2" | sed 's/^/kmeans /' >>pairs # whole passes need what pca needs
        pairs_of kmeans "$2" | sed 's/^/small /' >>pairs
        pairs_of gbdt "$2" | sed 's/^/gbdt /' >>pairs
        while read -r what topology consistency; do
            settings="$3 --topology $topology --consistency $consistency"
            about="$what, $settings"
            # shellcheck disable=SC2086
            case $what in
            bayes) alike "$about" bayes $bayes $settings ;;
            pca) alike "$about" pca $pca $settings ;;
            wide) alike "$about" wide $wide $settings ;;
            kmeans) alike "$about" kmeans $kmeans $settings ;;
            gbdt) alike "$about" gbdt $gbdt $settings ;;
            small) near "$about" inertia "$(field kmeans inertia)" 0.12 $small $settings ;;
            esac
        done <pairs
    done
}

for what in bayes pca wide kmeans gbdt; do
    eval "words=\$$what"
    # shellcheck disable=SC2086,SC2154
    works $what $words
done
# Sums that are not exact: the same figures, but for rounding. Mini-batches by exact sums: the same bits.
# shellcheck disable=SC2086
{
    near "pca, plain sums" explained_share "$(field pca explained_share)" 1e-9 $pca --reduce plain --workers 4 --topology ps
    near "kmeans, plain sums" inertia "$(field kmeans inertia)" 1e-9 $kmeans --reduce plain --workers 4 --topology allreduce
    works mini $small --reduce exact
    for topology in local allreduce ps hybrid; do
        alike "mini-batches, $topology" mini $small --reduce exact --workers 4 --topology $topology
    done
}

# --- killed, and resumed ----------------------------------------------------------------------------------------------

has_checkpoints() { # has_checkpoints N
    [ "$("$PLAIT" checkpoint list d 2>/dev/null | grep -c 'clock [0-9]')" -ge "$1" ] || gone "$pid"
}

# is_killed words...: when it has written two checkpoints. Returns 1 if the newest one is the run's end.
is_killed() {
    rm -rf d
    # shellcheck disable=SC2086
    $runner "$PLAIT" "$@" --topology ps --checkpoint d --checkpoint-every 2 >out 2>err &
    pid=$!
    until_holds 300 has_checkpoints 2 || fail "$what: no checkpoint: $(cat err)"
    kill -KILL $pid 2>/dev/null || true
    wait $pid || true
    [ "$(field whole clocks)" -gt "$("$PLAIT" checkpoint list d | tail -n 1 | sed 's/.*clock \([0-9]*\).*/\1/')" ]
}

# goes_on WHAT RUNNER words...: killed, it ends with the bits of a run that was not. The run that goes on has three workers,
# unless the runner has ranks of its own.
goes_on() {
    what=$1 runner=$2
    shift 2
    works whole "$@"
    in_time is_killed "$@"
    alike "$what, resumed" whole "$@" --workers 3 --topology allreduce --resume d
}
resumed() { # resumed RUNNER
    # shellcheck disable=SC2086
    {
        goes_on "bayes" "$1" $bayes --batch 6
        goes_on "pca" "$1" $pca --pca-solver randomised --power-passes 120
        goes_on "kmeans" "$1" $kmeans --epochs 200 --clusters 40 --seed 2 --batch 100
        goes_on "gbdt" "$1" $gbdt --epochs 60
    }
}

# --- where ranks are processes ----------------------------------------------------------------------------------------

pid_of() { sed -n 's/.*"rank": '"$1"', .*"pid": \([0-9]*\).*/\1/p' m 2>/dev/null | head -n 1; }

# without RANK words...: it dies in the middle, and the model is that of a run in which nobody died
without() {
    victim=$1
    shift
    rm -rf m out err model model.done
    works slow "$@"
    "$PLAIT" launch -n 3 -- "$PLAIT" "$@" --replicas 2 --topology ps --metrics m --out model >out 2>err &
    pid=$!
    until_holds 300 says m '"event": "clock"\|"event": "epoch"' || fail "$*: no clock ends: $(cat err)"
    kill -KILL "$(pid_of "$victim")" 2>/dev/null || true
    until_holds 120 gone $pid || { fail "$*: does not end"; kill -9 $pid; }
    wait $pid || fail "$*: ends with $?: $(cat err)"
    hash=$(sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' out)
    [ "$hash" = "$(field slow model_hash)" ] || fail "$*, without rank $victim: model $hash, not $(field slow model_hash)"
    grep -q '"ranks_lost": \[\]' model.done && return 1
    grep -q '"ranks_lost": \['"$victim"'\]' model.done || fail "$*: $(cat model.done)"
}

if [ "$way" != yes ] && [ "$way" != no ]; then
    PLAIT_MPIRUN=$way
    export PLAIT_MPIRUN
    for topology in allreduce ps; do
        for what in bayes pca kmeans gbdt; do
            eval "words=\$$what"
            # shellcheck disable=SC2086
            alike "$what, processes, $topology" $what launch -n 3 -- "$PLAIT" $words --topology $topology
        done
    done
    # shellcheck disable=SC2086
    {
        near "mini-batches, processes, async" inertia "$(field kmeans inertia)" 0.12 \
            launch -n 2 -- "$PLAIT" $small --topology ps --consistency async
        in_time without 1 $pca --pca-solver randomised --power-passes 400
        in_time without 0 $kmeans --epochs 400 --clusters 40 --batch 100
    }
    finish
fi

# --- threads, and simulated hosts -------------------------------------------------------------------------------------

every threads threads
resumed ""

if [ "$way" = yes ]; then
    every sim processes
    # A rank dies at some share of the time that the run takes. The first centres of kmeans are given: until the first
    # clock nobody takes over.
    head -n 5 digits.csv >five.csv
    kmeans="$kmeans --centres five.csv"
    for what in bayes wide kmeans; do
        eval "words=\$$what"
        [ $what != bayes ] || words="$words --batch 100"
        settings="--transport sim --workers 4 --topology ps --replicas 2"
        # shellcheck disable=SC2086
        works lives $words $settings
        for share in 0.2 0.5 0.8; do
            at=$(awk -v s="$(field lives virtual_seconds)" -v share=$share 'BEGIN { printf "%.6f", s * share }')
            printf 'version: 1\nhosts: [{count: 4}]\nevents:\n  - kill: {ranks: 1, at: %s s}\n' "$at" >c.yaml
            # shellcheck disable=SC2086
            alike "$what, a death after $at s" lives $words $settings --cluster c.yaml --metrics m
            grep -q '"event": "rank_lost"' m || fail "$what: nobody was lost after $at s"
        done
    done
fi
echo "$count runs with the same result"
finish
