#!/bin/sh
# With --reduce exact the model and its losses have the same bits whatever carries the updates, with any number of workers,
# servers and threads, and whoever computes which block. With PLAIT_TEST_FULL: all of a9a and of the digits, sgd, adam and lbfgs,
# 1, 2, 3, 4, 8 and 16 workers, each topology, each form of collective; else a part of each.
# usage: exact.sh threads|mpi|sim
. "$(dirname "$0")/common.sh"
transport=$1
runs=0

# alike words...: a run, whose hash and losses must be the reference's. sums: the reference, or empty: this is it
alike() {
    runs=$((runs + 1))
    works one "$@" --reduce exact --json --quiet
    got="$(field one model_hash) $(field one train_loss) $(field one objective) $(field one progressive_loss)"
    if [ -z "$sums" ]; then
        sums=$got
    elif [ "$got" != "$sums" ]; then
        fail "plait $*: $got, not $sums"
    fi
}

# digits N: the first N rows, with names of columns
digits() {
    gzip -dc "$data/digits/digits.csv.gz" | awk -v n="$1" '
        NR == 1 { for (i = 0; i < 64; i++) printf "p%d,", i; print "digit" }
        NR <= n'
}

# with WORKERS words...: the same over the transport at hand
with() {
    workers=$1
    shift
    case $transport in
    mpi) alike launch -n "$workers" -- "$PLAIT" train "$@" ;;
    *) alike train "$@" --transport "$transport" --workers "$workers" ;;
    esac
}

# matrix words...: each topology and number of workers
matrix() {
    sums=""
    alike train "$@" --topology local --workers 1 --threads 1
    for workers in $counts; do
        [ "$transport" != threads ] || with "$workers" "$@" --topology local
        with "$workers" "$@" --topology ps
        with "$workers" "$@" --topology hybrid
        for form in $forms; do with "$workers" "$@" --topology allreduce --collective "$form"; done
    done
    with 3 "$@" --topology ps --filter key-cache,key-delta,zstd
    with 3 "$@" --topology ps --aggregate host
    case "$transport $*" in
    *lbfgs*) ;;
    threads*) with 3 "$@" --topology ps --servers 2 --threads 2 --balance dynamic ;;
    esac
}

if [ -n "${PLAIT_TEST_FULL:-}" ]; then
    counts="1 2 3 4 8 16"
    forms="auto ring tree recursive rabenseifner hierarchical"
    gzip -dc "$data/a9a/a9a.gz" >a9a
    digits 9999 >digits.csv
    for optimizer in sgd adam; do
        matrix --data a9a --epochs 2 --batch 512 --optimizer $optimizer
        matrix --data digits.csv --label digit --epochs 3 --batch 64 --optimizer $optimizer
    done
    matrix --data a9a --epochs 10 --optimizer lbfgs
else
    counts="3"
    forms="auto rabenseifner"
    gzip -dc "$data/a9a/a9a.gz" | head -n 1000 >a9a
    digits 400 >digits.csv
    matrix --data a9a --epochs 2 --batch 250 --optimizer adam
    matrix --data digits.csv --label digit --epochs 2 --batch 64 --optimizer sgd
    matrix --data a9a --epochs 2 --batch 100 --optimizer adagrad --hash-bits 14
    matrix --data a9a --epochs 4 --optimizer lbfgs
fi
if [ "$transport" = threads ]; then
    exits 2 "exact sums with consistency ssp:1 are refused.*nearest is bsp" refused train --data a9a --workers 2 --consistency ssp:1 --reduce exact
    exits 2 "filter fixed8 with exact sums is refused" refused train --data a9a --workers 2 --topology ps --filter fixed8 --reduce exact
fi
echo "$runs runs"
finish
