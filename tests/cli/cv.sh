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
exits 1 'short: expected a number for each of the 300 rows' none cv --data part --folds-from short
sed '7s/.*/seven/' folds >letter
exits 1 "letter:7: expected the number of a fold, found 'seven'" none cv --data part --folds-from letter
(cat folds; echo 1) >long
exits 1 'long:301: the data have only 300 rows' none cv --data part --folds-from long
finish
