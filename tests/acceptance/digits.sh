#!/bin/sh
# Multinomial logistic regression on digits with defaults: accuracy >= 0.95, the mean of five folds (row number mod 5).
. "$(dirname "$0")/common.sh"

for fold in 0 1 2 3 4; do
    gzip -dc "$data/digits/digits.csv.gz" | awk -F , -v fold=$fold '
        NR == 1 {
            line = "p0"
            for (i = 1; i < 64; i++) line = line ",p" i
            print line ",digit" >"train.csv"
            print line ",digit" >"test.csv"
        }
        { print >(NR % 5 == fold ? "test.csv" : "train.csv") }'
    works digits train --model logistic --data train.csv --test test.csv --label digit --json --out digits.model
    holds digits classes "== 10"
    field digits test_accuracy
done >folds
cat folds
awk '{ sum += $1 } END { exit !(NR == 5 && sum / NR >= 0.95) }' folds || fail "the mean accuracy is below 0.95"

works proba predict --model-file digits.model --data test.csv --proba
awk 'NF != 10 { exit 1 }' proba.out || fail "predict --proba: not ten probabilities a row"

# Columns go by name: another order predicts the same.
awk -F , 'BEGIN { OFS = "," } { last = $65; for (i = 64; i >= 1; i--) $(i + 1) = $i; $1 = last; print }' test.csv >moved.csv
works straight predict --model-file digits.model --data test.csv
works moved predict --model-file digits.model --data moved.csv
cmp -s straight.out moved.out || fail "predict goes by the order of columns, not by their names"
finish
