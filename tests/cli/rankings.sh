#!/bin/sh
# Rankings: gbdt learns the order within queries better than a regression does; the bits are the same for 1, 2, 3 and 4
# workers, also from a pipe, from two files and when queries are longer than blocks; eval and the record have NDCG@10; rows
# without a query, queries that come again and labels that are no grades are named, with their place.
. "$(dirname "$0")/common.sh"

refuses() { # refuses EXIT TEXT words...
    want_exit=$1 want_text=$2
    shift 2
    exits "$want_exit" "$want_text" refused "$@"
}

# queries FROM TO ROWS: queries of so many rows; two numbers say the grade, a third is the query's own level
queries() {
    awk -v from="$1" -v to="$2" -v rows="$3" 'function u() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
        BEGIN { for (q = from; q < to; q++) { seed = 1000 + q * 77; u(); level = u(); for (i = 0; i < rows; i++) {
        a = u(); b = u(); c = u(); z = 3 * a + 2 * (b > 0.5) + u() - 3 * level
        printf "%d qid:%d 1:%.3f 2:%.3f 3:%.3f 4:%.3f\n", z < 0.5 ? 0 : z < 1.5 ? 1 : z < 3 ? 2 : 3, q, a, b, c, level } } }'
}
queries 1 61 20 >train
queries 100 140 20 >test
train="train --model gbdt --data train --test test --json --quiet --epochs 12"
alike() { [ "$(field "$1" model_hash)" = "$(field "$2" model_hash)" ] || fail "$3: another model than $1"; }
above() { awk -v x="$(field "$1" test_ndcg10)" -v y="$2" 'BEGIN { exit !(x > y && x <= 1) }' || fail "$1: NDCG@10 $(field "$1" test_ndcg10)"; }

for loss in ndcg pairwise; do
    # shellcheck disable=SC2086
    works "$loss" $train --loss $loss --out $loss.plait
    above $loss 0.85
    for setting in "--workers 2" "--workers 3 --topology ps" "--workers 4 --topology allreduce --threads 2" "--workers 2 --grow depth --depth 3"; do
        # shellcheck disable=SC2086
        works other $train --loss $loss $setting
        case $setting in
        *depth*)
            # shellcheck disable=SC2086
            works alone $train --loss $loss --grow depth --depth 3
            alike alone other "$loss $setting" ;;
        *) alike $loss other "$loss $setting" ;;
        esac
    done
    works judged eval --model-file $loss.plait --data test --json
    [ "$(field judged test_ndcg10)" = "$(field $loss test_ndcg10)" ] || fail "$loss: eval has another NDCG"
    awk -v a="$(field judged test_loss)" -v b="$(field judged test_ndcg10)" -v l=$loss \
        'BEGIN { exit !(l == "pairwise" ? a > 0 : a + b > 0.999999 && a + b < 1.000001) }' || fail "$loss: the loss is not 1 - NDCG"
done

# a query that is longer than 1/64 of the file, and 4 workers of which some have no rows; files have queries of their own
queries 1 4 200 >long
works long1 train --model gbdt --loss ndcg --data long --epochs 4 --json --quiet
works long4 train --model gbdt --loss ndcg --data long --epochs 4 --json --quiet --workers 4
alike long1 long4 "long queries"
"$PLAIT" train --model gbdt --loss ndcg --data - --epochs 4 --json --quiet <long >piped.out 2>piped.err || fail "a pipe: $(cat piped.err)"
alike long1 piped "a pipe"
works twice1 train --model gbdt --loss ndcg --data long --data long --epochs 4 --json --quiet
works twice3 train --model gbdt --loss ndcg --data long --data long --epochs 4 --json --quiet --workers 3
alike twice1 twice3 "two files"

# validation by a file stops early; a share of the rows would part queries
# shellcheck disable=SC2086
works early $train --loss ndcg --validation test --patience 2 --epochs 200
[ "$(field early epochs)" -lt 200 ] || fail "patience did not end the run"
# shellcheck disable=SC2086
refuses 2 "would part queries; take --validation FILE" $train --loss ndcg --validation 0.2

# --- mistakes --------------------------------------------------------------------------------------------------------------
{ cat train; head -1 train; } >again
refuses 1 "again:1201: query 1: its rows do not stand together" train --model gbdt --loss ndcg --data again
refuses 1 "again:1201: query 1: its rows do not stand together" train --model gbdt --loss ndcg --data again --workers 3
{ head -30 train; echo "1 1:1"; } >nameless
refuses 1 "nameless:31: the row names no query" train --model gbdt --loss pairwise --data nameless
sed 's/^3 /40 /' train >grades
refuses 1 "ndcg takes grades, whole numbers from 0 to 31" train --model gbdt --loss ndcg --data grades
refuses 2 "only trees of --model gbdt learn rankings" train --model mlp --loss ndcg --data train
refuses 2 "only trees of --model gbdt learn rankings" train --model logistic --loss ndcg --data train
refuses 2 "take --loss squared, or --model gbdt" train --model forest --loss pairwise --data train
refuses 2 "did you mean ndcg" train --model gbdt --loss ncdg --data train
echo "1 qid:4294967296 1:1" >large
refuses 1 "large:1: expected qid:number, below 2.32" train --model gbdt --loss ndcg --data large
finish
