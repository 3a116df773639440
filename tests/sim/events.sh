#!/bin/sh
# Each event of the script is seen in the time that the run takes, or in what it sends.
. "$(dirname "$0")/common.sh"

# timed NAME: the run under c.yaml
timed() {
    # shellcheck disable=SC2086
    works "$1" $sim --workers 4 --cluster c.yaml --topology ps --consistency bsp
}
cluster 4
timed plain
cluster 4 "slow: {ranks: 2, factor: 4}"
timed slow
longer plain slow 3
cluster 4 "slow: {ranks: 2, factor: 4, from: 0, until: 200 ms}"
timed awhile
longer plain awhile 1.1
longer awhile slow 1.5
cluster 4 "burst: {factor: 4, every: 100 ms, length: 50 ms, hosts: all}"
timed burst
longer plain burst 1.3
cluster 4 "jitter: {sigma: 0.5}"
timed jitter
longer plain jitter 1.2
cluster 4 "freeze: {ranks: 1, from: 100 ms, until: 2 s}"
timed freeze
longer plain freeze 2
cluster 4 "link: {ranks: 1, factor: 0, from: 100 ms, until: 2 s}"
timed cut
longer plain cut 2
cluster 4 "link: {ranks: 0-3, factor: 0.0001}"
timed narrow
longer plain narrow 1.5
cluster 4 "messages: {delay: 10 ms, delayed: 1}"
timed delay
longer plain delay 1.8
cluster 4 "messages: {dropped: 0.2}"
timed drop
longer plain drop 1.3
cluster 4 "messages: {doubled: 1}"
timed double
[ "$(field plain model_hash)" = "$(field double model_hash)" ] || fail "doubled messages change the model"
[ "$(field plain trace_hash)" != "$(field double trace_hash)" ] || fail "doubled messages are not seen"

# A straggler holds up everybody under bsp, and few under a stale policy.
cluster 6 "burst: {factor: 6, every: 40 ms, length: 30 ms}"
# shellcheck disable=SC2086
{
    works bsp $sim --workers 4 --servers 2 --cluster c.yaml --topology ps --consistency bsp
    works stale $sim --workers 4 --servers 2 --cluster c.yaml --topology ps --consistency ssp:8
}
longer stale bsp 1.15
holds bsp idle_share "> 0.15"

# A death while the ranks join what they know of the data: others still read what the dead one has laid out for them. That
# they do not read freed memory is for the sanitizers to see.
gzip -dc "$data/a9a/a9a.gz" | head -n 100 >few
for at in 20 22 24 26 28 30 32 34; do
    { echo "version: 1"; echo "hosts: [{count: 7}]"; echo "cost: {clock: 1 ms, notice: 22 ms, resend: 20 ms}"; echo "events:"; } >c.yaml
    echo "  - kill: {ranks: 0, at: $at ms}" >>c.yaml
    echo "  - messages: {delay: 5.6 ms, delayed: 0.12, doubled: 0.19, dropped: 0.04}" >>c.yaml
    run joining train --data few --transport sim --workers 4 --servers 3 --topology ps --cluster c.yaml --seed 38 --epochs 2 --quiet
    [ $code -eq 3 ] || fail "rank 0 dies at $at ms: exit $code: $(tail -n 1 joining.err)"
done
finish
