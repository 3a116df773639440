#!/bin/sh
# Multinomial logistic regression on digits, a fifth of the rows held back: test accuracy >= 0.95.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/digits/digits.csv.gz" | awk -F , '
    NR == 1 {
        line = "p0"
        for (i = 1; i < 64; i++) line = line ",p" i
        print line ",digit" >"train.csv"
        print line ",digit" >"test.csv"
    }
    { print >(NR % 5 == 0 ? "test.csv" : "train.csv") }'
works digits train --model logistic --data train.csv --test test.csv --label digit --json --out digits.model
holds digits test_accuracy ">= 0.95"
holds digits classes "== 10"
works proba predict --model-file digits.model --data test.csv --proba
awk 'NF != 10 { exit 1 }' proba.out || fail "predict --proba: not ten probabilities a row"

# Columns go by name: another order predicts the same.
awk -F , 'BEGIN { OFS = "," } { last = $65; for (i = 64; i >= 1; i--) $(i + 1) = $i; $1 = last; print }' test.csv >moved.csv
works straight predict --model-file digits.model --data test.csv
works moved predict --model-file digits.model --data moved.csv
cmp -s straight.out moved.out || fail "predict goes by the order of columns, not by their names"
finish
