#!/bin/sh
# A seed repeats bit for bit: trace, model, simulated time; also pinned to one core. Another seed is another run.
. "$(dirname "$0")/common.sh"
cluster 6 "jitter: {sigma: 0.5}" "burst: {factor: 4, every: 200 ms, length: 50 ms}" \
    "messages: {delay: 2 ms, delayed: 0.05, doubled: 0.02, dropped: 0.01}"

for setting in "--topology ps --consistency bsp --servers 2" "--topology ps --consistency ssp:2 --servers 2" "--topology allreduce"; do
    # shellcheck disable=SC2086
    {
        works once $sim --workers 4 --cluster c.yaml --seed 5 $setting
        works other $sim --workers 4 --cluster c.yaml --seed 6 $setting
        works twice $sim --workers 4 --cluster c.yaml --seed 5 $setting
    }
    for key in trace_hash model_hash virtual_seconds idle_share bytes_sent train_seconds; do
        [ "$(field once $key)" = "$(field twice $key)" ] || fail "$setting: $key is $(field once $key), then $(field twice $key)"
    done
    [ "$(field once trace_hash)" != "$(field other trace_hash)" ] || fail "$setting: two seeds, one trace"
    [ "$(field once virtual_seconds)" != "$(field other virtual_seconds)" ] || fail "$setting: two seeds, one time"
done
if command -v taskset >/dev/null; then
    taskset -c 0 "$PLAIT" $sim --workers 4 --cluster c.yaml --seed 5 --topology allreduce >pinned.out 2>pinned.err ||
        fail "pinned to one core it fails"
    [ "$(field once trace_hash)" = "$(field pinned trace_hash)" ] || fail "pinned to one core the trace is another"
fi
finish
