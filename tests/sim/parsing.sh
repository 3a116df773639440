#!/bin/sh
# A single pass parses its next batch while the sums of a clock travel: what takes a second to parse and a second on its way
# takes little more than one, and the model is the same.
. "$(dirname "$0")/common.sh"
mkdir rows
gunzip -c "$data/a9a/a9a.gz" >rows/a9a # a folder is streamed however small
costs() { # NAME LATENCY PARSED
    cat >c.yaml <<END
version: 1
hosts: [{count: 4, latency: $2}]
cost: {parsed: $3, entry: 0 ns, key: 0 ns, sum: 0 ns, value: 0 ns}
END
    works "$1" train --model logistic --data rows --epochs 1 --batch 2000 --transport sim --workers 4 --cluster c.yaml \
        --topology allreduce --json --quiet
}
costs travels "10 ms" "0 ns"
costs parses "1 ns" "5 us"
costs both "10 ms" "5 us"
for other in travels parses; do
    [ "$(field $other model_hash)" = "$(field both model_hash)" ] || fail "$other and both have different models"
done
share=$(awk -v a="$(field travels train_seconds)" -v b="$(field parses train_seconds)" -v both="$(field both train_seconds)" \
    'BEGIN { print both / (a + b) }')
awk -v share="$share" 'BEGIN { exit !(share > 0.5 && share < 0.7) }' || fail "both take $share of the time of one after the other"
finish
