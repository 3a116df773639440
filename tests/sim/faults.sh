#!/bin/sh
# A rank that is killed loses the run, which names it; one that is frozen for good is waited for until the timeout. Where
# messages are lost, nobody ends before the others have heard the last that it says.
. "$(dirname "$0")/common.sh"
for rank in 0 2 5; do
    cluster 6 "kill: {ranks: $rank, at: 200 ms}"
    for setting in "--topology ps --consistency bsp" "--topology ps --consistency async"; do
        # shellcheck disable=SC2086
        exits 3 "rank $rank: killed by c.yaml at 0.2 s" killed $sim --workers 4 --servers 2 --cluster c.yaml $setting
    done
done
cluster 4 "kill: {ranks: 2, at: 200 ms}"
exits 3 "rank 2: killed by c.yaml at 0.2 s" killed $sim --workers 4 --cluster c.yaml --topology allreduce --metrics m
grep -q '"event": "rank_lost", "rank": 2, "why": "[^"]*killed by c.yaml at 0.2 s' m || fail "the metrics do not tell who was lost: $(tail -n 2 m)"
tail -n 1 m | grep -q '"event": "end", "status": "a peer is lost", "rank_lost": 2' || fail "the end does not tell who was lost: $(tail -n 1 m)"
for setting in "--topology gossip:ring" "--topology gossip:exp --consistency async"; do
    # shellcheck disable=SC2086
    exits 3 "rank 2: killed by c.yaml at 0.2 s" killed $sim --workers 4 --cluster c.yaml $setting --metrics m
    grep -q '"event": "rank_lost", "rank": 2, "why": "[^"]*killed by c.yaml at 0.2 s' m || fail "$setting: who was lost? $(tail -n 2 m)"
done
cluster 6 "kill: {ranks: 5, at: 200 ms}" # a server
# shellcheck disable=SC2086
exits 3 "rank 5: killed" server $sim --workers 4 --servers 2 --cluster c.yaml --topology ps --metrics m
tail -n 1 m | grep -q '"rank_lost": 5' || fail "the end does not tell which server was lost: $(tail -n 1 m)"
# A run with copies goes on: who takes the dead one's place is told at once, and in the result.
cluster 6 "kill: {ranks: 1, at: 2 ms}"
gzip -dc "$data/a9a/a9a.gz" | head -n 300 >part
copies="train --data part --epochs 3 --batch 20 --topology ps --replicas 2 --transport sim --cluster c.yaml"
# shellcheck disable=SC2086
works spare $copies --workers 5 --spares 1
grep -q 'rank 1 has failed: .*; the run goes on without it, and spare rank 4 takes its place$' spare.err || fail "nobody tells of the spare: $(cat spare.err)"
grep -q '^lost  *rank 1; spare rank 4 took over$' spare.out || fail "the result does not tell of the spare: $(cat spare.out)"
# shellcheck disable=SC2086
works none $copies --workers 5
grep -q '; the run goes on without it$' none.err && grep -q '^lost  *rank 1$' none.out || fail "who was lost: $(cat none.out none.err)"
cluster 6 "kill: {ranks: 4, at: 2 ms}"
# shellcheck disable=SC2086
works idle $copies --workers 5 --spares 1
grep -q '; the run goes on without it, which was a spare$' idle.err && grep -q '^lost  *rank 4 (a spare)$' idle.out || fail "a spare was lost: $(cat idle.out idle.err)"
cluster 4 "freeze: {ranks: 1, from: 200 ms}"
exits 3 "rank [0-3] waited 5 s of simulated time for" frozen $sim --workers 4 --cluster c.yaml --timeout 5s
[ -z "$(sed 's/^plait: rank [0-9]*: //; s/^error: //' frozen.err | sort | uniq -d)" ] || fail "told twice: $(cat frozen.err)"
grep -q "no sign of life" frozen.err && fail "after 5 s a rank is called silent"
exits 3 "rank 1: no sign of life since second 0.2 .8.* rank [0-3] waits for" silent $sim --workers 4 --cluster c.yaml --timeout 20s
cluster 4 "freeze: {ranks: 1, from: 200 ms, until: 12 s}"
# shellcheck disable=SC2086
works thawed $sim --workers 4 --cluster c.yaml
grep -q "rank 1: no sign of life since second 0.2" thawed.err || fail "12 s of silence are not told"
cluster 4 "link: {ranks: 0, factor: 0, from: 200 ms}"
exits 3 "rank 0: no sign of life since second 0.2" silent $sim --workers 4 --cluster c.yaml --timeout 20s
grep -q "rank [123]: no sign of life" silent.err && fail "others than the rank that is cut off are called silent"
cluster 4 "link: {ranks: 1, factor: 0, from: 200 ms}"
exits 3 "rank" cut $sim --workers 4 --cluster c.yaml --timeout 5s
cluster 4 "messages: {dropped: 0.2}"
for seed in 1 2 3 4 5 6; do
    # shellcheck disable=SC2086
    {
        works lossy $sim --workers 4 --cluster c.yaml --seed $seed --topology ps --consistency ssp:1 --servers 0
        works lossy $sim --workers 4 --cluster c.yaml --seed $seed --topology allreduce
    }
done
finish
