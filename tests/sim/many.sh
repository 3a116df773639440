#!/bin/sh
# A few hundred ranks in one process: within bounds of memory, repeatable.
. "$(dirname "$0")/common.sh"
awk 'BEGIN { srand(1); for (i = 0; i < 2000; i++) { printf "%d", rand() < 0.5 ? 1 : -1; at = 1
    for (k = 0; k < 10; k++) { at += 1 + int(rand() * 1900); printf " %d:1", at } print "" } }' >rows.svm
many="train --model logistic --data rows.svm --transport sim --workers 200 --servers 4 --batch 400 --epochs 2 --normalize none --json --quiet"
# shellcheck disable=SC2086
works first $many
# shellcheck disable=SC2086
works second $many
[ "$(field first trace_hash)" = "$(field second trace_hash)" ] || fail "the trace is another"
[ "$(field first model_hash)" = "$(field second model_hash)" ] || fail "the model is another"
holds first clocks "== 10"
finish
