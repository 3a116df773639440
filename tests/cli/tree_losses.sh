#!/bin/sh
# The train_loss of trees is that of the saved model on the rows that were trained on: of each kind of loss, with weights of
# classes, rows held back or drawn, a model of the best round, rows cut by features, a resumed run, and forests.
. "$(dirname "$0")/common.sh"

awk 'function u() { s = (s * 16807) % 2147483647; return s / 2147483647 }
    BEGIN { s = 3; print "y,city,a,b" >"rows.csv"; print "y,city,a,b" >"kinds.csv"; for (i = 0; i < 1200; i++) {
        t = int(u() * 9); a = u(); b = u(); z = 3 * a * b + (t % 3) + u(); l = sprintf(",%s,%s,%.3f", i % 40 ? "c" t : "", i % 50 ? a : "", b)
        print (z > 2) l >"rows.csv"; print int(z) l >"kinds.csv"
        if (i % 20 == 0) q++
        printf "%d qid:%d 1:%.3f 2:%.3f\n", z, q, a, b >"ranked" } }'
# same ABOUT DATA words...: what the run reports is what eval finds; of all rows
same() {
    about=$1 data=$2
    shift 2
    works run train --data "$data" --leaves 6 --epochs 6 "$@" --out model --quiet --json
    works found eval --model-file model --data "$data" --json
    awk -v a="$(field run train_loss)" -v b="$(field found test_loss)" 'BEGIN { exit !(a > 0 && a - b < 1e-9 * b && b - a < 1e-9 * b) }' ||
        fail "$about: a train_loss of $(field run train_loss), but eval finds $(field found test_loss)"
}
two="--model gbdt --label y"
# shellcheck disable=SC2086
{
    same "two classes" rows.csv $two
    same "classes" kinds.csv $two
    same "drawn rows" rows.csv $two --subsample 0.5 --workers 3 --topology ps
    same "by features" kinds.csv $two --loss squared --trees-by features --workers 3 --topology allreduce
    same "voting" rows.csv $two --trees-by voting --workers 2 --topology ps
    same "ranked" ranked --model gbdt --loss ndcg
    same "a forest" rows.csv --model forest --label y
    same "huber" kinds.csv $two --loss huber --workers 2
    same "a model of fewer rounds" rows.csv $two --validation rows.csv --patience 1 --learning-rate 3
    same "kept" rows.csv $two --checkpoint kept --checkpoint-every 1
    same "resumed" rows.csv $two --checkpoint kept --resume kept --epochs 9 --workers 2
}

# Weights of rows, and of classes. Rows held back are no part of it.
awk -F, 'NR == 1 { print $0 ",w" } NR > 1 { print $0 "," ($1 == 1 ? 3 : 1) }' rows.csv >weighted.csv
# shellcheck disable=SC2086
works all train $two --data rows.csv --leaves 6 --epochs 6 --class-weight 1:3 --quiet --json
# shellcheck disable=SC2086
works run train $two --data weighted.csv --leaves 6 --epochs 6 --weight-column w --out model --quiet --json
works found eval --model-file model --data weighted.csv --weight-column w --json
[ "$(field all train_loss)" = "$(field run train_loss)" ] || fail "weights: $(field all train_loss) of classes, $(field run train_loss) of rows"
awk -v a="$(field run train_loss)" -v b="$(field found test_loss)" 'BEGIN { exit !(a - b < 1e-9 && b - a < 1e-9) }' ||
    fail "weights: a train_loss of $(field run train_loss), but eval finds $(field found test_loss)"
# shellcheck disable=SC2086
works held train $two --data rows.csv --epochs 4 --validation 0.3 --quiet --json --out model
works found eval --model-file model --data rows.csv --json
awk -v all="$(field found test_loss)" -v mine="$(field held train_loss)" -v others="$(field held validation_loss)" \
    'BEGIN { share = (all - mine) / (others - mine); exit !(share > 0.2 && share < 0.4) }' ||
    fail "rows held back: $(field held train_loss), $(field held validation_loss), all $(field found test_loss)"
finish
