#!/bin/sh
# What is scheduled or ranked, among processes and in simulated time: rankings, topics and factorisation have the bits that they
# have over threads; and compare takes rankings.
# usage: scheduled.sh SIM MPI: yes or no, whether the build has them
. "$(dirname "$0")/common.sh"

key() { tail -n 1 "$1.out" | sed -n 's/.*"'"$2"'": "\{0,1\}\([^,"}]*\).*/\1/p'; }
alike() { [ -n "$(key "$1" model_hash)" ] && [ "$(key "$1" model_hash)" = "$(key "$2" model_hash)" ] || fail "$3: another model than over threads"; }

awk 'function u() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
    BEGIN { for (q = 1; q < 41; q++) { seed = 1000 + q * 77; u(); for (i = 0; i < 12; i++) { a = u(); b = u(); z = 3 * a + 2 * (b > 0.5) + u()
        printf "%d qid:%d 1:%.3f 2:%.3f\n", z < 1.5 ? 0 : z < 3 ? 1 : 2, q, a, b } } }' >ranked
awk 'BEGIN { s = 7; for (d = 0; d < 120; d++) { printf "0"; for (w = 0; w < 20; w++) { s = (s * 16807) % 2147483647
    n = (w % 2 == d % 2) * (s % 5) + (s % 11 == 0); if (n > 0) printf " %d:%d", w, n } print "" } }' >counted
awk 'BEGIN { for (k = 0; k < 900; k++) { u = (k * 7919) % 40; i = (k * 104729 + int(k / 40)) % 30
    printf "user%d item%d %.2f\n", u, i, 3 + sin(u) + cos(i) } }' >rated
rank="train --model gbdt --loss ndcg --data ranked --test ranked --epochs 4 --leaves 7 --json --quiet"
topics="train --model lda --data counted --format libsvm --label none --components 2 --epochs 6 --batch 60 --reduce exact --json --quiet"
rate="train --model mf --data rated --components 4 --epochs 4 --learning-rate 0.1 --json --quiet"

# shellcheck disable=SC2086
{
    works rank $rank
    works topics $topics
    works rate $rate --workers 2 --topology ps
    works als $rate --optimizer als
    works ranking compare ${rank#train } --workers 2 --topology allreduce,ps --consistency bsp --report ranking.html
    grep -q '"figure": "test_ndcg10", "best": "[ap]' ranking.out && [ -s ranking.html ] || fail "compare of a ranking: $(head -n 9 ranking.out)"
    if [ "$1" = yes ]; then
        for topology in ps allreduce; do
            works there $rank --workers 3 --transport sim --topology $topology
            alike rank there "a ranking, simulated, $topology"
            [ "$(key there test_ndcg10)" = "$(key rank test_ndcg10)" ] || fail "a ranking, simulated: NDCG@10 $(key there test_ndcg10)"
            works there $topics --workers 3 --transport sim --topology $topology
            alike topics there "topics, simulated, $topology"
            works there $rate --optimizer als --workers 3 --transport sim --topology $topology
            alike als there "als, simulated, $topology"
        done
        works there $rate --workers 2 --transport sim --topology ps --consistency ssp:2 --item-blocks 16
        alike rate there "a rotation, simulated, ssp:2"
    fi
    if [ "$2" = yes ]; then
        works there launch -n 3 -- "$PLAIT" $rank --topology ps
        alike rank there "a ranking, processes"
        works there launch -n 3 -- "$PLAIT" $topics --topology ps
        alike topics there "topics, processes"
        works there launch -n 3 -- "$PLAIT" $rate --optimizer als --topology allreduce
        alike als there "als, processes"
        works there launch -n 2 -- "$PLAIT" $rate --topology ps --consistency ssp:2 --events turns
        alike rate there "a rotation, processes, ssp:2"
        works certified audit --schedule turns.0 turns.1
    fi
}
finish
