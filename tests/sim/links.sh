#!/bin/sh
# Links carry several messages at once: four ranks that read and push a model over servers take about as long as the bytes
# of one of them need on its link, and not as long as if they came one after the other.
. "$(dirname "$0")/common.sh"
awk 'BEGIN { for (i = 0; i < 64; i++) { printf "%d", i % 32; for (k = 1; k <= 256; k++) printf " %d:1", k; print "" } }' >rows.svm
cat >c.yaml <<'END'
version: 1
hosts: [{count: 8, bandwidth: 1 MB/s}]
cost: {entry: 0 ns}
END
# What a rank sends in a clock, it and its shard, is three quarters of the model for each: 2 * 3/4 * 32 KiB.
for ranks in 2 4; do
    # shellcheck disable=SC2086
    works links train --model logistic --data rows.svm --transport sim --workers $ranks --cluster c.yaml --topology ps \
        --consistency bsp --batch 8 --epochs 8 --normalize none --json --quiet
    apart=$(awk -v clock="$(field links train_seconds)" -v clocks="$(field links clocks)" -v sent="$(field links bytes_sent)" -v ranks=$ranks \
        'BEGIN { print clock / (sent / ranks / 1e6) }')
    awk -v apart="$apart" 'BEGIN { exit !(apart >= 0.95 && apart <= 1.15) }' || fail "$ranks ranks take $apart of the time of a link's bytes"
done
finish
