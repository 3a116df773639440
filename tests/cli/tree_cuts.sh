#!/bin/sh
# Trees cut by features are those cut by rows, bit for bit: with 1, 2, 3, 4 and 8 workers, over allreduce, ps and hybrid,
# on threads, sim and mpi, dense and sparse, with rows held back, drawn and ranked, texts and forests, and resumed. Voting
# has the same bits over each topology, sends at most 0.3 of the bytes of rounds by rows, and costs little loss. What has
# no effect is refused.
# usage: tree_cuts.sh SIM LAUNCHES   (yes or no)
. "$(dirname "$0")/common.sh"

sim=$1 launches=$2
hash_of() { field "$1" model_hash; }
# alike ABOUT words...: the model is that of the run before named `rows`
alike() {
    about=$1
    shift
    works other train "$@" --quiet --json
    [ "$(hash_of other)" = "$(hash_of rows)" ] || fail "$about: another model than by rows"
}

awk 'function u() { s = (s * 16807) % 2147483647; return s / 2147483647 }
    BEGIN { s = 7; print "y,city,a,b,c,d,e" >"cities.csv"; for (i = 0; i < 1500; i++) {
        t = int(u() * 9); l = ""; v = ""; for (j = 0; j < 5; j++) { x[j] = u(); l = l sprintf(",%.3f", x[j]); v = v sprintf(" %d:%.3f", j + 1, x[j]) }
        z = 3 * x[0] * x[1] + x[2] + (t % 3) + 0.3 * u()
        print (z > 2.4) ",c" t l >"cities.csv"
        if (i % 20 == 0) q++
        printf "%d qid:%d%s\n", z, q, v >"ranked" } }'
dense="--model gbdt --data cities.csv --label y --epochs 3 --leaves 8 --validation 0.2"
sparse="--model gbdt --data $scratch/part --epochs 3 --subsample 0.7 --colsample 0.6 --grow depth --depth 3 --min-rows 5"
ranked="--model gbdt --loss ndcg --data ranked --epochs 2 --leaves 6"
forest="--model forest --data cities.csv --label y --epochs 2 --leaves 12"

for what in dense sparse ranked forest; do
    eval "words=\$$what"
    # shellcheck disable=SC2086
    works rows train $words --quiet --json
    for setting in "1 ps" "2 allreduce" "3 ps" "4 allreduce" "8 ps"; do
        # shellcheck disable=SC2086
        alike "$what, $setting" $words --trees-by features --workers ${setting% *} --topology ${setting#* } --reduce exact
    done
done

# shellcheck disable=SC2086
{
    works rows train $dense --quiet --json
    alike "hybrid" $dense --trees-by features --workers 2 --topology hybrid --threads 2
    alike "servers" $dense --trees-by features --workers 2 --servers 1 --topology ps
    works cut train $dense --epochs 2 --trees-by features --workers 3 --topology ps --checkpoint kept --checkpoint-every 5 --quiet
    alike "resumed" $dense --trees-by features --workers 2 --topology allreduce --resume kept
    [ "$sim" = no ] || alike "sim" $dense --trees-by features --workers 4 --topology ps --transport sim
    if [ "$launches" = yes ]; then
        works mpi launch -n 2 -- train $dense --trees-by features --topology allreduce --transport mpi --quiet --json
        [ "$(hash_of mpi)" = "$(hash_of rows)" ] || fail "mpi: another model than by rows"
    fi
}

# Bytes of rounds: of so many less those of a quarter of them, so that bins cost nothing.
awk 'function u() { s = (s * 16807) % 2147483647; return s / 2147483647 }
    BEGIN { s = 5; for (i = 0; i < 6000; i++) { l = ""; for (j = 0; j < 28; j++) { x[j] = u(); l = l sprintf(",%.3f", x[j]) }
        print (3 * x[0] * x[1] + 2 * x[2] + x[3] * x[4] + 0.4 * u() > 2.1) l >(i < 4000 ? "wide.csv" : "new.csv") } }'
bytes() { # bytes NAME words...: of 6 rounds
    few=$1.few many=$1
    shift
    works "$few" train --model gbdt --data wide.csv --test new.csv --label 1 --epochs 2 --quiet --json "$@"
    works "$many" train --model gbdt --data wide.csv --test new.csv --label 1 --epochs 8 --quiet --json "$@"
    echo $(($(field "$many" bytes_sent) - $(field "$few" bytes_sent)))
}
for topology in allreduce ps; do
    all=$(bytes all --topology $topology --workers 2)
    some=$(bytes $topology --topology $topology --workers 2 --trees-by voting)
    [ $((some * 10)) -le $((all * 3)) ] || fail "$topology: voting sends $some bytes, by rows $all"
done
[ "$(hash_of allreduce)" = "$(hash_of ps)" ] || fail "voting: another model over ps"
# Four workers' sums of few bins are short, and take the form of few bytes all the same.
short="--topology allreduce --workers 4 --bins 63 --trees-by voting"
# shellcheck disable=SC2086
some=$(bytes short $short) all=$(bytes least $short --collective rabenseifner)
[ "$some" -le "$all" ] || fail "voting: short sums send $some bytes, in the form of few bytes $all"
awk -v x="$(field ps test_loss)" -v y="$(field all test_loss)" 'BEGIN { exit !(x > 0 && x < 1.02 * y) }' ||
    fail "voting: a test loss of $(field ps test_loss), by rows $(field all test_loss)"
# The sample for bins travels packed: of 300 sparse rows two workers send half of the bytes that their words have.
works alone train --model gbdt --data part --leaves 2 --epochs 1 --quiet --json
works packed train --model gbdt --data part --leaves 2 --epochs 1 --workers 2 --topology allreduce --quiet --json
[ "$(hash_of alone)" = "$(hash_of packed)" ] || fail "the sample of two workers cuts other bins than one worker's"
[ "$(field packed bytes_sent)" -lt 25000 ] || fail "the bins of 300 rows and a split cost $(field packed bytes_sent) bytes"
works rows train --model gbdt --data wide.csv --label 1 --epochs 2 --quiet --json
alike "one voter that elects all" --model gbdt --data wide.csv --label 1 --epochs 2 --trees-by voting --elect 28
# shellcheck disable=SC2086
works voted train $forest --trees-by voting --workers 3 --quiet
# shellcheck disable=SC2086
works many train $forest --trees-by voting --workers 2 --elect 1000 --tries 500
for about in "elect 1000" "tries 500"; do
    grep -q "note: --$about is taken as [0-9]*, since no more features have two bins" many.err || fail "--$about: nothing was said"
done

# shellcheck disable=SC2086
{
    exits 2 "wants one of rows|features|voting, not 'columns'" refused train $dense --trees-by columns
    exits 2 "elect with --trees-by features is refused: no worker votes; take --trees-by voting" refused train $dense --trees-by features --elect 3
    exits 2 "table sides is not in this run: splits travel only with --trees-by features" refused train $dense --table sides:topology=ps
    exits 2 "table histogram is not in this run" refused train $dense --trees-by features --table histogram:topology=ps
    exits 2 "was made with '--trees-by features'" refused train $dense --resume kept
}
finish
