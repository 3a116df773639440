#!/bin/sh
# Columns of texts in trees: a column is one feature, split by sets of its texts; sets find what single texts cannot; the
# bits are the same for 1 to 4 workers and when resumed; a text that training has not seen goes with the missing ones;
# contributions add up to the score; xgboost-json names the categories; what makes no sense is refused or noted by name.
. "$(dirname "$0")/common.sh"

refuses() { # refuses EXIT TEXT words...
    want_exit=$1 want_text=$2
    shift 2
    exits "$want_exit" "$want_text" refused "$@"
}
awk 'function u() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    BEGIN { seed = 5; print "y,city,kind,x"; for (i = 0; i < 3000; i++) { c = int(u() * 24); k = int(u() * 3); x = u()
    y = (c * 7 % 5 < 2 ? 3 : -1) + (k == 1 ? 2 * x : 0) + u() / 10
    printf "%.4f,%s,%s,%.3f\n", y, u() < 0.03 ? "" : "c" c, substr("abc", k + 1, 1), x } }' >rows.csv
train="train --model gbdt --loss squared --data rows.csv --label y --leaves 8 --json --quiet --epochs 10"
# shellcheck disable=SC2086
works sets $train --out sets.plait
# shellcheck disable=SC2086
works apart $train --categories apart --out apart.plait
grep -aq '"plait.format": *"2"' sets.plait && grep -aq '"plait.format": *"1"' apart.plait ||
    fail "a program of format 1 would read sets wrongly, and only these"
awk -v a="$(field sets train_loss)" -v b="$(field apart train_loss)" 'BEGIN { exit !(a < b / 2) }' ||
    fail "sets: $(field sets train_loss), single texts: $(field apart train_loss)"
for setting in "--workers 2 --topology ps" "--workers 3 --topology allreduce" "--workers 4 --threads 2"; do
    # shellcheck disable=SC2086
    works other $train $setting
    [ "$(field other model_hash)" = "$(field sets model_hash)" ] || fail "$setting: another model"
done
# shellcheck disable=SC2086
works part $train --epochs 4 --checkpoint kept --checkpoint-every 1
# shellcheck disable=SC2086
works resumed $train --workers 2 --resume kept
[ "$(field resumed model_hash)" = "$(field sets model_hash)" ] || fail "resumed: another model"
works tree inspect sets.plait --trees 1
grep -q "^city in {c.*}, gain" tree.out || fail "no set of cities: $(cat tree.out)"
works weights inspect sets.plait --weights
[ "$(wc -l <weights.out)" = 3 ] || fail "not three features: $(cat weights.out)"

# a city that is new, and one that is missing
printf 'city,kind,x\nnowhere,b,0.5\n,b,0.5\nc0,b,0.5\n' >new.csv
works new predict --model-file sets.plait --data new.csv --label none
[ "$(sed -n 1p new.out)" = "$(sed -n 2p new.out)" ] && [ "$(sed -n 1p new.out)" != "$(sed -n 3p new.out)" ] ||
    fail "new and missing texts: $(cat new.out)"
works shares predict --model-file sets.plait --data new.csv --label none --contributions
paste new.out shares.out | awk '{ s = 0; for (i = 2; i <= NF; i++) s += $i; if (NF != 5 || s - $1 > 1e-8 || $1 - s > 1e-8) exit 1 }' ||
    fail "contributions: $(cat shares.out)"
works out export --model-file sets.plait --format xgboost-json --out sets.json
grep -q '"feature_types": *\["c", *"c", *"float"\]' sets.json || fail "xgboost-json: no categories"
works out export --model-file sets.plait --format onnx --out sets.onnx

# shellcheck disable=SC2086
refuses 2 "a column of texts has no order" $train --monotone +city
# shellcheck disable=SC2086
refuses 2 "sets" $train --categories set
works noted train --model gbdt --loss squared --data rows.csv --label y --epochs 2 --categories apart --category-l2 3
grep -q "category-l2.*apart" noted.err || fail "an option without effect is not noted: $(cat noted.err)"
finish
