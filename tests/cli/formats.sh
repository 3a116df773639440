#!/bin/sh
# What predict, eval and inspect print; the keys of the record.
. "$(dirname "$0")/common.sh"

works train train --data part --optimizer adagrad --epochs 3 --out model --json --quiet
keys="model rows features classes workers spares replicas transport topology consistency collective optimizer epochs clocks objective train_loss
progressive_loss test_loss test_accuracy test_auc test_rmse test_mae load_seconds train_seconds cpu_seconds
clocks_per_second bytes_sent peak_rss_bytes updates_dropped clocks_skipped shards_moved moved_bytes model_hash idle_share virtual_seconds trace_hash messages tables optimizer_why pair_why label converged gap validation_loss oob_loss oob_accuracy best_epoch stopped_early path ranks_lost"
# exact NAME: the object's keys are the contract's, in its order; those of its tables are their own affair
exact() {
    # shellcheck disable=SC2086
    printf '%s\n' $keys >want
    sed 's/"tables": \[[^]]*\]/"tables": []/' "$1.out" | grep -o '"[a-z_]*":' | tr -d '":' >got
    cmp -s want got || fail "$1: keys are $(tr '\n' ' ' <got)"
}
exact train
[ "$(wc -l <train.out)" -eq 1 ] || fail "more than the object on stdout"
[ -s train.err ] && fail "--quiet is not"

# What validation came to: in the record, in the table, and how far the model has come.
set -- train --data part --seed 3 --epochs 9 --batch 20 --optimizer sgd --learning-rate 8 --schedule constant --validation 0.3
works early "$@" --patience 2 --json --out early.model
best=$(field early best_epoch)
[ "$(field early stopped_early)" = true ] && [ "$(field early epochs)" -eq $((best + 2)) ] || fail "stopped early: $(cat early.out)"
holds early validation_loss "> 0"
works early "$@" --patience 2
grep -q "^validation loss  *[0-9.]*, of epoch $best; stopped early$" early.out || fail "the table says of validation: $(grep valid early.out)"
works early inspect early.model
grep -q "\"epochs\": $((best + 2)), \"best_epoch\": $best," early.out || fail "inspect does not give the epochs run: $(grep epochs early.out)"
works late "$@" --json
[ "$(field late stopped_early) $(field late epochs)" = "false 9" ] || fail "not stopped early: $(cat late.out)"
[ "$(field train validation_loss) $(field train best_epoch) $(field train stopped_early) $(field train converged)" = "null null null null" ] ||
    fail "without validation: $(cat train.out)"
works lbfgs train --data part --optimizer lbfgs --json
works short train --data part --optimizer lbfgs --epochs 2 --json
[ "$(field lbfgs converged) $(field short converged)" = "true false" ] || fail "lbfgs: converged is $(field lbfgs converged), $(field short converged)"
[ "$(field train gap)" = null ] || fail "an update rule claims to know the gap: $(field train gap)"
awk "BEGIN { exit !($(field lbfgs gap) <= 1e-4 && $(field short gap) > 1e-4) }" ||
    fail "lbfgs: the gap is $(field lbfgs gap), $(field short gap)"
works said train --data part --optimizer lbfgs --epochs 2
grep -q "^clocks .*, not converged: about [0-9.]* % above the least objective$" said.out || fail "nothing is said of the gap: $(grep clocks said.out)"

works inspect inspect model
[ "$(grep -c '^label' inspect.out)" -eq 2 ] || fail "inspect: not two labels"
[ "$(sed -n 's/^label\t//p' inspect.out | tr '\n' ' ')" = "-1 1 " ] || fail "inspect: labels $(grep label inspect.out)"
works weights inspect model --weights
grep -qvP '^[^\t]+\t-?[0-9.e+-]+$' weights.out && fail "inspect --weights: $(grep -vP '^[^\t]+\t-?[0-9.e+-]+$' weights.out | head -n 1)"
grep -q '^(intercept)' weights.out || fail "inspect --weights: no intercept"

# predict: a line a row, labels as they were written.
works labels predict --model-file model --data part
[ "$(wc -l <labels.out)" -eq 300 ] || fail "predict: $(wc -l <labels.out) lines for 300 rows"
grep -qvxE -- '-1|\+?1' labels.out && fail "predict: a label that the data does not have"
works proba predict --model-file model --data part --proba
awk 'NF != 2 || $0 !~ /^[0-9.e-]+ [0-9.e-]+$/ || $1 + $2 < 0.999999 || $1 + $2 > 1.000001 { bad = 1 } END { exit bad }' proba.out ||
    fail "predict --proba: not two probabilities a line"
paste -d ' ' labels.out proba.out | awk '{ if (($3 > $2) != ($1 + 0 == 1)) bad = 1 } END { exit bad }' ||
    fail "predict --proba: not in the order of inspect"
exits 2 "contributions: model logistic is refused" none predict --model-file model --data part --contributions
works file predict --model-file model --data part --proba --out proba.file
cmp -s proba.out proba.file || fail "predict --out differs from stdout"
[ -s file.out ] && fail "predict --out: something on stdout"

# eval agrees with train's record of its test.
works tested train --data part --test part --optimizer adagrad --epochs 3 --json --quiet
works eval eval --model-file model --data part --json
exact eval
for key in test_loss test_accuracy test_auc; do
    [ "$(field eval $key | cut -c 1-10)" = "$(field tested $key | cut -c 1-10)" ] ||
        fail "eval: $key is $(field eval $key), train had $(field tested $key)"
done
[ "$(field eval model_hash)" = "$(field tested model_hash)" ] || fail "eval: another model_hash"
works people eval --model-file model --data part
grep -q '^test accuracy' people.out || fail "eval without --json tells no accuracy"

# What eval says of each class is what predict answers, counted.
cut -d ' ' -f 1 part | sed 's/^+//' >truth
sed 's/^+//' labels.out | paste -d ' ' truth - >both
for pair in '-1 -1' '-1 1' '1 -1' '1 1'; do grep -cxe "$pair" both || :; done | tr '\n' ' ' >counted
works classes eval --model-file model --data part --json --by-class
sed -n 's/.*"confusion": \[\[\([0-9]*\), \([0-9]*\)\], \[\([0-9]*\), \([0-9]*\)\]\].*/\1 \2 \3 \4 /p' classes.out | tr -d '\n' >told
cmp -s counted told || fail "eval --by-class: $(cat told), predict's labels say $(cat counted)"
grep -q '^ *class *rows *precision' people.out && grep -q '^ *class  taken for$' people.out ||
    fail "eval: nothing of each class: $(cat people.out)"
read -r a b c d <counted || :
awk "BEGIN { p = $d / ($b + $d); r = $d / ($c + $d); printf \"%.4f %.4f %.4f\", p, r, 2 * p * r / (p + r) }" >scores
awk 'NF == 5 && $1 == 1 && $2 ~ /^[0-9]+$/ { printf "%s %s %s", $3, $4, $5 }' people.out | cmp -s - scores ||
    fail "eval: class 1 scores $(grep '^ *1 ' people.out), not $(cat scores)"

# A regression has values, no probabilities; what does not apply is null.
works squared train --model squared --data part --epochs 2 --out squared.model --json --quiet
exact squared
[ "$(field squared classes)" = null ] || fail "classes of a regression: $(field squared classes)"
works values predict --model-file squared.model --data part
grep -qvxE -- '-?[0-9.]+(e[-+][0-9]+)?' values.out && fail "predict: $(grep -vxE -- '-?[0-9.]+(e[-+][0-9]+)?' values.out | head -n 1)"
exits 2 'probabilities' noproba predict --model-file squared.model --data part --proba
finish
