#!/bin/sh
# A cluster's file says when workers join and leave (`join`, `leave`), and which ranks are parted (`partition`): the bits of a
# run with a fixed number of workers, proven by the audit; with checkpoints, validation and deaths; and what is refused.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 3000 >train.svm
job="train --data train.svm --model logistic --optimizer adam --epochs 4 --batch 200 --topology ps --replicas 2 --reduce exact
    --blocks 140 --quiet --json"
# shellcheck disable=SC2086
works fixed $job --workers 2
want=$(field fixed model_hash) loss=$(field fixed progressive_loss)
job="$job --transport sim --cluster c.yaml"

same() { # NAME: the bits of the fixed run, and the losses of all rows
    [ "$(field "$1" model_hash)" = "$want" ] || fail "$1: another model"
    [ "$(field "$1" progressive_loss)" = "$loss" ] || fail "$1: other losses"
}

cluster 5 "join: {ranks: 2-3, at: 100 ms}" "leave: {ranks: 3, at: 250 ms}" "leave: {ranks: 0, at: 300 ms}" \
    "join: {ranks: 0, at: 450 ms}" "join: {ranks: 3-4, at: 450 ms}" "leave: {ranks: 0-2, at: 500 ms}"
for more in "--events log" "--checkpoint kept --checkpoint-every 1" "--checkpoint kept --checkpoint-every 7" "--curve 4"; do
    rm -rf kept
    # shellcheck disable=SC2086
    works turns $job --workers 2:5 $more
    same turns
done
works proven audit log
grep -q "5 workers" proven.out || fail "the log has not 5 workers: $(head -n 1 proven.out)"
# The one that trains alone in the end is rank 3; rank 4 dies while all others are away.
# shellcheck disable=SC2086
works resumed $job --workers 2:5 --checkpoint kept --checkpoint-every 9
rm -rf kept/checkpoint-*60 kept/checkpoint-*54
cluster 5 "join: {ranks: 4, at: 20 ms}" "leave: {ranks: 1, at: 60 ms}"
# shellcheck disable=SC2086
works resumed $job --workers 2:5 --resume kept
same resumed

# With deaths, and a run that ends early: those who are away are told.
early="train --data train.svm --model logistic --optimizer adam --batch 200 --topology ps --replicas 2 --reduce exact --blocks 140
    --validation 0.1 --schedule constant --learning-rate 3 --epochs 12 --patience 1 --quiet --json"
# shellcheck disable=SC2086
works early $early --workers 2
grep -q '"stopped_early": true' early.out || fail "the run did not end early"
want=$(field early model_hash) loss=$(field early progressive_loss)
cluster 5 "join: {ranks: 2-4, at: 50 ms}" "leave: {ranks: 1-2, at: 150 ms}" "join: {ranks: 1, at: 3600 s}"
# shellcheck disable=SC2086
works judged $early --transport sim --cluster c.yaml --workers 2:5
same judged
awk -v s="$(field judged virtual_seconds)" 'BEGIN { exit !(s < 60) }' || fail "the run waits for a worker that is to join in an hour"
for dies in "3, at: 170 ms" "1, at: 120 ms" "4, at: 49 ms" "2, at: 400 ms"; do
    cluster 5 "join: {ranks: 2-3, at: 50 ms}" "leave: {ranks: 2, at: 200 ms}" "kill: {ranks: $dies}"
    # shellcheck disable=SC2086
    works mourned $early --transport sim --cluster c.yaml --workers 2:5 --events log
    [ "$(field mourned model_hash)" = "$want" ] || fail "rank $dies: another model"
    works proven audit log
done

# Three sides, one of which has a majority and both replicas of every shard; then it heals.
cluster 5 "partition: {sides: [[0, 1, 2], [3], [4]], from: 100 ms, until: 900 ms}" "join: {ranks: 3-4, at: 60 ms}"
sed 's/clock: 10 ms/clock: 10 ms, patience: 100 ms/' c.yaml >d.yaml && mv d.yaml c.yaml
# shellcheck disable=SC2086
works parted $early --transport sim --cluster c.yaml --workers 3:5
[ "$(field parted model_hash)" = "$want" ] || fail "parted: another model"
grep -q "rank 3 stops: of the 5 ranks of view 1 it hears nobody" parted.err || fail "rank 3 does not stop: $(cat parted.err)"
grep -q '"ranks_lost": \[3, 4\]' parted.out || fail "ranks 3 and 4 are not lost: $(cat parted.out)"

# One of three dies and is started anew; then another is cut off. With the vote of the one that returned the third goes on.
three() { # EVENT
    cluster 3 "kill: {ranks: 2, at: 60 ms}" "partition: {sides: [[0, 2], [1]], from: 400 ms}" "$1"
    sed 's/clock: 10 ms/clock: 10 ms, patience: 100 ms/' c.yaml >d.yaml && mv d.yaml c.yaml
}
three "revive: {ranks: 2, at: 150 ms}"
# shellcheck disable=SC2086
works revived $early --transport sim --cluster c.yaml --workers 3
[ "$(field revived model_hash)" = "$want" ] || fail "revived: another model"
# Nobody is cut off: its vote changes nothing.
cluster 3 "kill: {ranks: 2, at: 60 ms}" "revive: {ranks: 2, at: 150 ms}"
# shellcheck disable=SC2086
works quiet $early --transport sim --cluster c.yaml --workers 3
[ "$(field quiet model_hash)" = "$want" ] || fail "quiet: another model"
three "slow: {factor: 1}"
# shellcheck disable=SC2086
exits 3 "rank 0 stops: of the 2 ranks of view 2 it hears nobody" alone $early --transport sim --cluster c.yaml --workers 3
cluster 5 "join: {ranks: 2-3, at: 100 ms}"

# shellcheck disable=SC2086
exits 2 "c.yaml:5: join is refused: this job has a fixed number of workers; nearest is --workers MIN:MAX" none $job --workers 5
# shellcheck disable=SC2086
exits 2 "^plait: --scale beside .join. and .leave. in c.yaml is refused: each says who is in" both $job --workers 3:5 --scale 5:4
cluster 5 "join: {ranks: 3, at: 60 ms}" "leave: {ranks: 4, at: 50 ms}"
# shellcheck disable=SC2086
exits 2 "c.yaml:6: leave: rank 4 is away at 0.05 s" away $job --workers 3:5
cluster 5 "join: {ranks: 3, at: 60 ms}" "leave: {ranks: 0-1, at: 70 ms}"
# shellcheck disable=SC2086
exits 2 "c.yaml:6: leave: without rank 1 only 2 workers would be in at 0.07 s; --workers 3:5 wants 3 at least" few $job --workers 3:5
finish
