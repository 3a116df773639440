#!/bin/sh
# a9a with no flag but the data: test accuracy >= 0.848, log-loss <= 0.3245.
. "$(dirname "$0")/common.sh"

works a9a train --model logistic --data "$data/a9a/a9a.gz" --test "$data/a9a/a9a.t.gz" --json --out a9a.model
holds a9a test_accuracy ">= 0.848"
holds a9a test_loss "<= 0.3245"
holds a9a rows "== 32561"
[ -s a9a.model ] || fail "no model file"
[ -s a9a.model.done ] || fail "no completion record"

works labels predict --model-file a9a.model --data "$data/a9a/a9a.t.gz"
works proba predict --model-file a9a.model --data "$data/a9a/a9a.t.gz" --proba
gzip -dc "$data/a9a/a9a.t.gz" | cut -d ' ' -f 1 >truth
awk 'NR == FNR { truth[NR] = $1 + 0; next } { n++; if ($1 + 0 == truth[FNR]) hits++ }
    END { exit !(n == 16281 && hits / n >= 0.848) }' truth labels.out || fail "predict: labels do not reach 0.848"
awk 'NF != 2 || $1 + $2 < 0.999999 || $1 + $2 > 1.000001 { exit 1 } END { exit NR != 16281 }' proba.out ||
    fail "predict --proba: not two probabilities a row"
works eval eval --model-file a9a.model --data "$data/a9a/a9a.t.gz" --json
holds eval test_accuracy ">= 0.848"
holds eval test_loss "<= 0.3245"
finish
