#!/bin/sh
# A rank dies while kmeans' first centres are drawn: behind the making of the job, before the table is there. With two
# replicas the run goes on, and has the model of the run in which nobody died. A seed draws the rank and the moment.
. "$(dirname "$0")/common.sh"
runs=30
[ -z "${PLAIT_TEST_FULL:-}" ] || runs=300
gzip -dc "$data/digits/digits.csv.gz" | head -n 600 >part
train="train --model kmeans --data part --label 65 --clusters 6 --reduce exact --epochs 3 --topology ps --replicas 2
       --transport sim --workers 4 --json --quiet"
cluster 6 "freeze: {ranks: 0, from: 1000 s}" # an event that never comes
# shellcheck disable=SC2086
works whole $train --cluster c.yaml --trace trace

# span NAME PART: the numbers of the spans of this name, in us: when the last of the first begins, or ends
span() {
    awk -v name="\"$1\"" -v part="$2" '
        index($0, name) && match($0, /"pid": [0-9]+/) {
            rank = substr($0, RSTART + 7, RLENGTH - 7)
            if (rank in seen) next
            seen[rank] = 1
            match($0, /"ts": [0-9.]+/)
            at = substr($0, RSTART + 6, RLENGTH - 6)
            match($0, /"dur": [0-9.]+/)
            if (part == "end") at += substr($0, RSTART + 7, RLENGTH - 7)
            if (at > last) last = at
        }
        END { print last + 0 }' trace
}
from=$(span plait_job_create end | awk "{ print \$1 + 200 }") to=$(span plait_table_create begin)
awk -v from="$from" -v to="$to" 'BEGIN { exit !(from > 0 && to > from) }' || fail "no time in which centres are drawn: $from to $to us"

n=0 told=0
while [ $n -lt $runs ]; do
    n=$((n + 1))
    # every second one dies early, between the first sums; the long computation is behind them
    set -- $(awk -v seed=$n -v from="$from" -v to="$to" 'BEGIN {
        srand(seed); rand()
        share = seed % 2 ? rand() * rand() * rand() : rand()
        printf "%d %.3f", int(rand() * 4), from + share * (to - from) }')
    cluster 6 "kill: {ranks: $1, at: $2 us}"
    spares=$((n % 3 / 2))
    # shellcheck disable=SC2086
    works dies $train --workers $((4 + spares)) --spares $spares --cluster c.yaml --metrics m
    [ "$(field dies model_hash)" = "$(field whole model_hash)" ] || fail "rank $1 dies at $2 us, $spares spares: another model"
    grep -q '"event": "rank_lost", "rank": '"$1" m && told=$((told + 1))
done
[ $told -ge $((runs * 9 / 10)) ] || fail "only $told of $runs deaths were told"
finish
