#!/bin/sh
# A crowd of ranks in one process, each touching little of a large model: repeatable, also pinned to one core; and a clock
# costs each worker one push, one pull and one answer a shard, no more: whoever waits asks nobody again.
. "$(dirname "$0")/common.sh"
workers=${1:-200} servers=4 epoch=5
awk -v rows=$((workers * epoch)) 'BEGIN { srand(1); for (i = 0; i < rows; i++) { printf "%d", rand() < 0.5 ? 1 : -1; at = 1
    for (k = 0; k < 12; k++) { at += 1 + int(rand() * 1600); printf " %d:%.3f", at, 3 * rand() } print "" } }' >rows.svm
many="train --model logistic --data rows.svm --transport sim --workers $workers --servers $servers --blocks 200 --batch $workers --json --quiet"
# shellcheck disable=SC2086
{
    works first $many --epochs 1
    works longer $many --epochs 3
}
again="$PLAIT"
if command -v taskset >/dev/null; then again="taskset -c 0 $PLAIT"; fi
# shellcheck disable=SC2086
$again $many --epochs 3 >pinned.out 2>pinned.err || fail "pinned to one core it fails"
for key in trace_hash model_hash virtual_seconds messages; do
    [ "$(field longer $key)" = "$(field pinned $key)" ] || fail "$key is $(field longer $key), then $(field pinned $key)"
done
holds first clocks "== $epoch"
each=$((workers * servers * epoch * 2)) # of two more epochs: pushes as many, pulls and answers at most
more=$(($(field longer messages) - $(field first messages)))
[ $more -gt $each ] || fail "$more messages in $((epoch * 2)) clocks, fewer than $each pushes"
[ $more -le $((each * 3)) ] || fail "$more messages in $((epoch * 2)) clocks, more than $each each of pushes, pulls and answers"

# Where the workers hold the shards, a table of few values lies on one of them, and the others are asked nothing: a run
# costs messages by workers and clocks, not by pairs of workers.
awk '{ printf "%s", $1; for (k = 2; k <= NF; k++) { sub(/.*:/, "", $k); printf " %d:%s", k - 1, $k } print "" }' rows.svm >narrow.svm
works narrow train --model logistic --data narrow.svm --transport sim --workers "$workers" --topology ps --batch "$workers" --epochs 1 --json --quiet
most=$((workers * (epoch + 10) * 12)) # a clock, its beginning and its end: a push, a pull, sums, each with an answer
[ "$(field narrow messages)" -le $most ] || fail "$(field narrow messages) messages of $workers workers in $epoch clocks, more than $most"
finish
