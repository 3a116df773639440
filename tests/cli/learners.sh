#!/bin/sh
# Learners that keep named values, as their users see them: own options by flag, variable and configuration, in help, pages
# and records; figures in every report; transform, predict, eval and inspect; data with and without labels.
# usage: learners.sh PROTOBUF      yes: TensorBoard's files can be written
. "$(dirname "$0")/common.sh"

gzip -dc "$data/digits/digits.csv.gz" | head -n 600 | cut -d , -f 1-64 >plain.csv
gzip -dc "$data/digits/digits.csv.gz" | head -n 600 >labelled.csv # the digit is the last column
pca="train --model pca --data plain.csv --label none"

says_line() { grep -Eq -- "$2" "$1" || fail "$1 has no line '$2': $(cat "$1")"; }
key() { tail -n 1 "$1.out" | sed -n 's/.*"'"$2"'": \([^,}]*\).*/\1/p'; }

# --- own options, wherever they come from ---
# shellcheck disable=SC2086
works flag $pca --components 3 --whiten --json --quiet --out m
[ "$(key flag components) $(key flag whiten) $(key flag pca_solver)" = '3 true "auto"' ] || fail "the record: $(tail -n 1 flag.out)"
want=$(key flag model_hash)
# shellcheck disable=SC2086
PLAIT_COMPONENTS=3 PLAIT_WHITEN=yes works variable $pca --json --quiet
printf 'model: pca\ndata: plain.csv\nlabel: none\ncomponents: 3\nwhiten: true\n' >c.yaml
works file train --config c.yaml --json --quiet
for name in variable file; do [ "$(key $name model_hash)" = "$want" ] || fail "$name: another model"; done
# shellcheck disable=SC2086
works table $pca --components 3 --test plain.csv
says_line table.out '^components         3$'
says_line table.out '^whiten             no$'
says_line table.out '^explained share    0\.[0-9]+$'
says_line table.out '^objective          [0-9]'
says_line table.out '^test loss          [0-9]'
works config config --config c.yaml --show-origin
says_line config.out '^components: 3 +# c.yaml:4$'
says_line config.out '^# pca-solver: +# default$'

exits 2 '^plait: train: --components with model logistic: only pca, mf, lda have it$' other train --data part --components 3
PLAIT_COMPONENTS=3 exits 2 '^plait: train: PLAIT_COMPONENTS with model logistic: only pca, mf, lda have it$' other train --data part
exits 2 '^plait: train: c.yaml:4: components with model hinge: only pca, mf, lda have it$' other train --config c.yaml --model hinge
exits 2 '^plait: compare: all 2 settings.*components with model logistic|--components with model logistic: only pca' other \
    compare --data part --topology local,ps --consistency bsp --components 3
exits 2 'unknown option --component; did you mean --components' typo train --data part --component 3
exits 2 "^plait: train: --pca-solver wants one of auto.exact.randomised, not 'quick'" choice train --model pca --data plain.csv --pca-solver quick
exits 2 'components wants a whole number' bound train --model pca --data plain.csv --components=-1

exits 2 'it goes with --transport sim, and with --topology auto; the number of clusters is --clusters$' singular train --model kmeans --data plain.csv --cluster 3

# --- help, man page, completion ---
works help help train
says_line help.out '^  --components N +for pca: number of'
says_line help.out '^  --model logistic[|]' && says_line help.out '^      .*[|]pca'
works model help pca
says_line model.out '^  --components N '
says_line model.out '^  --pca-solver auto[|]exact[|]randomised$'
works man help --man
says_line man.out '^for pca: number of components'
works completion help --completion bash
says_line completion.out 'pca.solver\) COMPREPLY=\(\$\(compgen -W "auto exact randomised"'
says_line completion.out '    transform\)'

# --- what a model is used for ---
works projected transform --model-file m --data plain.csv
[ "$(wc -l <projected.out) $(awk -F '\t' 'NF != 3' projected.out | wc -l)" = "600 0" ] || fail "transform: $(head -n 2 projected.out)"
works written transform --model-file m --data plain.csv --out projected
cmp -s projected projected.out || fail "transform --out writes something else"
# near FILE: the numbers of projected.out, but for their last digits and the components' signs
near() {
    paste "$1" projected.out | awk '{ for (i = 1; i <= 3; i++) { a = $i * $i; b = $(i + 3) * $(i + 3)
        if (a - b > 1e-4 || b - a > 1e-4) bad = 1 } } END { exit bad || NR != 600 }' || fail "$1 is another projection: $(head -n 1 "$1")"
}
works with-labels train --model pca --data labelled.csv --label -1 --components 3 --whiten --quiet --out labelled
works labels-known transform --model-file labelled --data labelled.csv
near labels-known.out
works labels-none transform --model-file labelled --data plain.csv
near labels-none.out
works passes train --model pca --data labelled.csv --label -1 --components 3 --power-passes 3
grep -q -e '--power-passes has no effect on the exact solver' passes.err || fail "no note of --power-passes: $(cat passes.err)"
works no-passes train --model pca --data labelled.csv --label -1 --components 3
grep -q 'no effect' no-passes.err && fail "a note of an option that was not given: $(cat no-passes.err)"
works smooth train --model bayes --data labelled.csv --label -1 --events-model gaussian --alpha 2
grep -q -e '--alpha has no effect on events-model gaussian' smooth.err || fail "no note of --alpha: $(cat smooth.err)"
works all-kept train --model pca --data "$data/small/iris.csv" --label none --whiten --json --quiet # of 5 columns
[ "$(field all-kept objective | cut -c 1)" != - ] || fail "a mean square below 0: $(field all-kept objective)"
works eval eval --model-file m --data plain.csv
says_line eval.out '^explained share    0\.[0-9]+$'
says_line eval.out '^components         3$'
works eval-json eval --model-file m --data plain.csv --json
[ "$(key eval-json explained_share)" != "" ] && [ "$(key eval-json components)" = 3 ] || fail "eval --json: $(cat eval-json.out)"
works eval-labelled eval --model-file labelled --data plain.csv --json
awk 'BEGIN { print "a,b,label" } { print NR % 7 "," NR % 5 "," NR % 2 }' plain.csv >named.csv
cut -d , -f 1,2 named.csv >unnamed.csv
works named train --model pca --data unnamed.csv --label none --out named --quiet
works named-labels transform --model-file named --data named.csv
works named-none transform --model-file named --data unnamed.csv
cmp -s named-labels.out named-none.out || fail "a column that the model does not know changes the projection"
works left-out train --model pca --data named.csv
says_line left-out.err '^plait: note: label \(last column\) is read as the label, which model pca ignores; with --label none it is a feature$'
says_line left-out.out '^features           2$'
works first train --model pca --data plain.csv
says_line first.err '^plait: note: c1 \(first column\) is read as the label'
works named-label train --model pca --data labelled.csv --label -1
grep -q 'taken for the label' named-label.err && fail "a label that was named is noted: $(cat named-label.err)"
works inspect inspect m
says_line inspect.out '^option	components 3$'
says_line inspect.out '^value	components F64 \[3, 64\]$'
works weights inspect m --weights
says_line weights.out '^components 2,63	'
[ "$(grep -c '^components ' weights.out)" -eq 192 ] || fail "inspect --weights: $(grep -c '^components ' weights.out) elements"
exits 2 "^plait: predict: model pca predicts no label and no value; use 'plait transform'" none predict --model-file m --data plain.csv
says_line inspect.out '^feature	c1$'
[ "$(grep -c '^feature	' inspect.out)" -eq 64 ] || fail "inspect: $(grep -c '^feature	' inspect.out) features"
works inspect-named inspect named
says_line inspect-named.out '^feature	b$'
works linear train --data part --epochs 1 --out linear --quiet
exits 2 "^plait: transform: model logistic does not transform rows; use 'plait predict'" none transform --model-file linear --data part
exits 2 "unknown option --proba" none transform --model-file m --data plain.csv --proba
exits 2 '^plait: transform: no model' none transform --data plain.csv

# --- clusters: each way to read rows, first centres from a file, of which the model keeps no name ---
head -n 4 plain.csv >four.csv
head -n 3 plain.csv >three.csv
kmeans="train --model kmeans --clusters 4 --label none --quiet"
# shellcheck disable=SC2086
works centres $kmeans --data plain.csv --centres four.csv --json --out clusters
[ "$(key centres centres) $(key centres objective)" = "\"four.csv\" $(key centres train_loss)" ] || fail "the record: $(tail -n 1 centres.out)"
grep -aq four.csv clusters && fail "the model names a file"
# shellcheck disable=SC2086
exits 1 '^plait: nowhere.csv: No such file' nowhere $kmeans --data plain.csv --centres nowhere.csv --dry-run
# shellcheck disable=SC2086
exits 2 'has 3 rows, but one is needed for each of 4 clusters' three $kmeans --data plain.csv --centres three.csv
works number predict --model-file clusters --data plain.csv
works apart transform --model-file clusters --data plain.csv
paste number.out apart.out | awk '{ for (j = 2; j <= 5; j++) if ($j < $($1 + 2)) exit 1 } END { exit NR != 600 }' ||
    fail "predict is not the nearest of transform: $(paste number.out apart.out | head -n 1)"
exits 2 'kmeans is not a classification and has no probabilities' proba predict --model-file clusters --data plain.csv --proba
awk -F , '{ for (j = 1; j <= 64; j++) printf "%s%d:%s", (j > 1 ? " " : ""), j, $j; print "" }' plain.csv >plain.svm
tr , '\t' <plain.csv >plain.tsv
for form in svm tsv; do
    head -n 4 plain.$form >four.$form
    # shellcheck disable=SC2086
    works $form $kmeans --data plain.$form --centres four.$form --json
    [ "$(key $form inertia)" = "$(key centres inertia)" ] || fail "$form: inertia $(key $form inertia), not $(key centres inertia)"
done

# --- figures in what a run writes beside its record ---
# shellcheck disable=SC2086
works metrics $pca --components 3 --metrics metrics --quiet
grep '"event": "end"' metrics | grep -q '"figures": {"explained_share": 0' || fail "metrics: $(tail -n 1 metrics)"
if [ "${1:-no}" = yes ]; then
    # shellcheck disable=SC2086
    works board $pca --components 3 --tensorboard board --test plain.csv --quiet
    grep -aq end/explained_share board/* && grep -aq test/explained_share board/* || fail "TensorBoard has no figures"
fi
works compare compare --model pca --data plain.csv --label none --components 3 --topology local,ps --consistency bsp --repeats 1 --workers 2 --json --quiet
says_line compare.out 'explained_share'
grep -q '"figure": "explained_share"' compare.out || fail "compare --json names no figure"

# --- the command that goes on says what variables and the configuration said ---
# interrupted words...: a run that is asked to stop once it has begun, into go.out and go.err
interrupted() {
    rm -rf d go.err # the run before said "clock", too
    "$PLAIT" train --checkpoint d "$@" >go.out 2>go.err &
    pid=$!
    until_holds 120 says go.err 'clock ' || fail "it does not begin: $(cat go.err)"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 75 ] || fail "interrupted: exit $code: $(cat go.err)"
}
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat plain.csv; done >long.csv # so that it lasts
printf '%s\n' 'data: long.csv' 'label: none' 'model: pca' 'pca-solver: randomised' >c.yaml
PLAIT_COMPONENTS=2 PLAIT_WHITEN=false interrupted --config c.yaml --power-passes 900
says_line go.err 'plait train --checkpoint d --power-passes 900 --model pca --components 2 --whiten=false --pca-solver randomised .*--resume d$'
# An epoch's end is no place to stop without a checkpoint.
interrupted --data part --epochs 100000 --batch 300 --validation 0.2
says_line go.err 'to go on from the checkpoint: '

finish
