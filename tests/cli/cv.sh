#!/bin/sh
# plait cv: each row is held out once; a fold's figures are those of a training without it; folds depend on the data and
# the seed alone; what makes no sense is refused.
. "$(dirname "$0")/common.sh"

# of KEY: the values of a key of the folds, in order, a line each
of() { grep -o "\"$2\": [^,}]*" "$1.out" | sed 's/.*: //'; }
sum() { awk '{ s += $1 } END { print s }'; }

works whole cv --data part --json --quiet --folds 4
[ "$(of whole held_out | sum)" = 300 ] || fail "rows held out: $(of whole held_out | tr '\n' ' ')"
[ "$(of whole rows | tail -n +2 | sum)" = 900 ] || fail "rows trained on: $(of whole rows | tr '\n' ' ')"
grep -q '"split": "stratified"' whole.out || fail "classes are not spread: $(cat whole.out)"
echo 'checkpoint: kept' >one.yaml
works configured cv --data part --json --quiet --folds 4 --config one.yaml
[ "$(of configured optimizer)" = "$(of whole optimizer)" ] || fail "a checkpoint of a config file changes the folds: $(of configured optimizer)"
counts=$(sed -n 's/.*"confusion": \[\[\([0-9]*\), \([0-9]*\)\], \[\([0-9]*\), \([0-9]*\)\]\].*/\1 \2 \3 \4/p' whole.out)
# shellcheck disable=SC2086
set -- $counts
[ "$(($1 + $2)) $(($3 + $4))" = "$(grep -c '^-1' part) $(grep -vc '^-1' part)" ] || fail "counted: $counts"

# Given folds: each figure is that of train on the other rows, and the mean is the mean.
awk '{ print NR % 3 == 0 ? 7 : NR % 3 + 20 }' part >folds
works given cv --data part --json --quiet --folds-from folds --tolerance 1e-9
for pair in 1:0 2:1 3:2; do
    left=${pair#*:}
    awk -v left="$left" 'NR % 3 != left' part >others
    awk -v left="$left" 'NR % 3 == left' part >held
    works alone train --data others --test held --tolerance 1e-9 --json --quiet
    found=$(of given test_loss | tail -n 3 | sed -n "${pair%:*}p")
    awk "BEGIN { d = $found / $(field alone test_loss) - 1; exit !(d < 1e-5 && d > -1e-5) }" ||
        fail "fold $pair: the loss is $found, without the fold's rows $(field alone test_loss)"
done
mean=$(of given test_loss | tail -n 3 | awk '{ s += $1 } END { printf "%.9f", s / NR }')
awk "BEGIN { d = $mean - $(of given test_loss | head -n 1); exit !(d < 1e-8 && d > -1e-8) }" || fail "the mean is not $mean"

# The same folds, and by exact sums the same models, with two workers; another seed gives others.
for setting in '1 local' '2 local' '2 ps' '3 allreduce'; do
    works "w$setting" cv --data part --json --quiet --reduce exact --workers "${setting% *}" --topology "${setting#* }" --jobs 2
    of "w$setting" model_hash >"hashes.${setting% *}.${setting#* }"
    cmp -s hashes.1.local "hashes.${setting% *}.${setting#* }" || fail "$setting: other models than those of one worker"
done
works seeded cv --data part --json --quiet --reduce exact --seed 5
of seeded model_hash | cmp -s - hashes.1.local && fail "another seed has the same folds"

# In order: each fold is judged by the rows before it.
works ordered cv --data part --json --quiet --split ordered --folds 4
[ "$(of ordered rows | tail -n +2 | tr '\n' ' ')" = "60 120 180 240 " ] || fail "ordered: $(of ordered rows | tr '\n' ' ')"

# A line a fold, and what all of them came to; other models have their own figures.
works shown cv --model gbdt --data part --folds 3 --quiet
[ "$(grep -cE '^ +[123] +100 ' shown.out)" -eq 3 ] && grep -q '^ *mean ' shown.out && grep -q '^ *deviation ' shown.out ||
    fail "shown: $(cat shown.out)"
works clusters cv --model kmeans --clusters 4 --data part --folds 3 --json --quiet
grep -q '"split": "rows".*"mean": {.*"test_inertia": [0-9]' clusters.out || fail "kmeans: $(cat clusters.out)"
awk '{ print int(NR / 10), "qid:" int(NR / 7), "1:" NR % 7, "2:" NR }' part >ranks
works ranks cv --loss ndcg --model gbdt --data ranks --folds 3 --json --quiet
[ "$(grep -o '"test_ndcg10": [0-9.]*' ranks.out | wc -l)" -eq 5 ] || fail "ranking: $(cat ranks.out)"

# Folds may have names. Those of the file are shown.
sed 's/^7$/seven/' folds >names
works named cv --data part --json --quiet --folds-from names --tolerance 1e-9
of named test_loss | tail -n 3 | sort >losses.named
of given test_loss | tail -n 3 | sort | cmp -s - losses.named || fail "names are other folds than numbers: $(cat losses.named)"
grep -q '"fold": 3, "name": "seven"' named.out || fail "a fold has no name: $(cat named.out)"

# What rows that were held out show: curves whose area is the AUC, probabilities, residuals; and a page of all that.
works page cv --data part --folds 3 --report page.html --json --quiet
is_page page.html
grep -q '"test_auc"' page.html || fail "the page has no data"
json page.out 'all(abs(a[0] - f["test_auc"]) < 1e-9 for a, f in zip(o["roc"]["auc"], o["fold"])) and len(o["roc"]["auc"]) == 3'
json page.out 'len(o["roc"]["by_class"]) == 1 and all(len(c) == 101 and c == sorted(c) and c[-1] == 1 for c in o["roc"]["by_fold"])'
json page.out 'sum(o["calibration"]["weight"]) == 300 and o["residuals"] is None and o["options"]["data"] == "[part]"'
works squared cv --model squared --data part --folds 3 --json --quiet --report squared.html
json squared.out 'o["split"] == "rows"'
json squared.out 'o["residuals"]["rows"] == sum(o["residuals"]["histogram"]) == 300 and o["roc"] is None'
json squared.out 'abs(sum(r * r for r in o["residuals"]["residual"]) / sum(f["held_out"] * f["test_rmse"] ** 2 for f in o["fold"]) - 1) < 1e-9'
json clusters.out 'o["roc"] is None and o["calibration"] is None and o["residuals"] is None'
works hinge cv --model hinge --data part --folds 2 --json --quiet --report hinge.html
json hinge.out 'o["roc"] is None and o["confusion"]'
exits 2 'not written to standard output' none cv --data part --report -
exits 2 'report' none cv --data part --report part
cp folds own
exits 2 'report would write over --folds-from own' none cv --data part --folds-from own --report own
cmp -s folds own || fail "a refused run has written over the folds"
exits 1 'nowhere/page' none cv --data part --report nowhere/page.html

# Groups stay together, their column is no feature, and the folds do not depend on workers.
awk 'BEGIN { print "who,label,a,b"; for (i = 0; i < 120; i++) print "p" int(sqrt(i)) "," (i * 7 % 5 > 2) "," i * 13 % 17 "," i % 3 }' >people.csv
works grouped cv --data people.csv --group who --folds 3 --json --quiet --reduce exact
json grouped.out 'o["features"] == 2 and o["split"] == "groups" and o["group"] == "who" and sorted(f["held_out"] for f in o["fold"])[0] > 30'
works workers cv --data people.csv --group who --folds 3 --json --quiet --reduce exact --workers 2 --topology ps
of grouped model_hash >hashes.group
of workers model_hash | cmp -s - hashes.group || fail "workers change the folds of groups"
cut -d, -f1 people.csv | tail -n +2 >whose
cut -d, -f2- people.csv >people_alone.csv
works alone cv --data people_alone.csv --folds-from whose --json --quiet --reduce exact
works each cv --data people.csv --group who --folds 11 --json --quiet --reduce exact
of alone model_hash | sort >hashes.alone
of each model_hash | sort | cmp -s - hashes.alone || fail "a fold of one group each is other than its rows held out"
exits 2 'column "who" has only 11 groups' none cv --data people.csv --group who --folds 12
exits 2 'no column "whom" for the groups; did you mean "who"' none cv --data people.csv --group whom
exits 2 'group has no meaning for libsvm data' none cv --data part --group who
exits 2 'both label and group' none cv --data people.csv --group label
exits 2 'split stratified is refused with --group' none cv --data people.csv --group who --split stratified
exits 2 'give one of them' none cv --data people.csv --group who --folds-from whose
exits 2 'the column of groups is no feature' none cv --data people.csv --group who --text-columns a,who
exits 1 'nodir/x.html: .*make its directory first' none cv --data part --report nodir/x.html

# A configuration file may have cv's options beside train's.
printf 'folds: 4\nsplit: rows\nepochs: 3\n' >cv.yaml
works from cv --config cv.yaml --data part --json --quiet
json from.out 'o["folds"] == 4 and o["split"] == "rows" and o["fold"][0]["epochs"] <= 3'
works over cv --config cv.yaml --folds 2 --data part --json --quiet
json over.out 'o["folds"] == 2'
printf 'fold: 4\n' >typo.yaml
exits 2 "typo.yaml:1: unknown option 'fold'; did you mean folds" typo cv --config typo.yaml --data part
printf 'epochs: 2\nfolds: 1\n' >few.yaml
exits 2 'few.yaml:2: folds' few cv --config few.yaml --data part

exits 2 'did you mean --folds?' typed cv --data part --fold 3
exits 2 'unknown option --epoch' typed cv --data part --epoch 3
exits 2 'no data' none cv
exits 1 'nope: No such file' none cv --data nope
exits 2 'transport sim is refused' none cv --data part --transport sim
export OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0
exits 2 'started as 2 processes .*; start only one' none cv --data part
OMPI_COMM_WORLD_SIZE=1 # one that mpirun has started takes threads, too
works launched cv --data part --folds 2 --jobs 2 --quiet
unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK
exits 2 'out is for a single run' none cv --data part --out model
exits 2 'whole number from 2' none cv --data part --folds 1
exits 2 'leave --folds and --split out' none cv --data part --folds-from folds --folds 3
exits 2 'there are only 300 rows' none cv --data part --folds 301
exits 2 'read only once' none cv --data -
head -n 5 folds >short
exits 1 'short: expected a number or a name for each of the 300 rows' none cv --data part --folds-from short
sed '7s/.*//' folds >empty
exits 1 "empty:7: expected the number or the name of a fold, found nothing" none cv --data part --folds-from empty
(cat folds; echo 1) >long
exits 1 'long:301: the data have only 300 rows' none cv --data part --folds-from long
finish
