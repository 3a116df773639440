#!/bin/sh
# Under asp a worker that is slow for long leaves out clocks: the run takes as long as the others need, the audit proves the
# bound, and the record counts what was left out. Nobody leaves out any where hosts are alike, by jitter, or under other policies.
. "$(dirname "$0")/common.sh"
gzip -dc "$data/a9a/a9a.gz" | head -n 3000 >rows
run="train --model logistic --optimizer adagrad --data rows --epochs 2 --batch 30 --transport sim --workers 4 --servers 2 --topology ps --json"

cluster 6 "slow: {ranks: 2, factor: 4}"
# shellcheck disable=SC2086
{
    works slow $run --cluster c.yaml --consistency asp:8:50 --events e
    works bound $run --cluster c.yaml --consistency ssp:8 --quiet
    works again $run --cluster c.yaml --consistency asp:8:50 --events e2 --quiet
}
longer slow bound 3.2
skipped=$(field slow clocks_skipped)
[ "$skipped" -ge 130 ] && [ "$skipped" -le 160 ] || fail "$skipped of 800 clocks were left out, of which the slow worker has 200"
[ "$(field again trace_hash)" = "$(field slow trace_hash)" ] || fail "a run with leaps does not repeat"
grep -q "slow for long left out $skipped of 800 clocks.*--balance dynamic" slow.err || fail "nobody says what was left out: $(tail -n 2 slow.err)"
works proven audit e
grep -q 'asp:8:50' proven.out || fail "what was proven? $(cat proven.out)"
run refuted audit --as asp:0:50 e
[ "$code" -eq 4 ] || fail "a bound of 0 is not refuted: exit $code"
# shellcheck disable=SC2086
works net train --model mlp --layers 4 --data rows --epochs 2 --batch 30 --transport sim --workers 4 --servers 1 --topology ps --json \
    --quiet --cluster c.yaml --consistency asp:8:50
[ "$(field net clocks_skipped)" -ge 130 ] || fail "a net leaves out $(field net clocks_skipped) clocks"
# shellcheck disable=SC2086
works lockstep $run --cluster c.yaml --consistency bsp --quiet
[ "$(field lockstep clocks_skipped)" = null ] || fail "bsp leaves out $(field lockstep clocks_skipped) clocks"

cluster 6 "jitter: {ranks: 0-3, sigma: 0.5}" "burst: {ranks: 0-3, factor: 4, every: 400 ms, length: 100 ms, hosts: one}"
# shellcheck disable=SC2086
works even $run --cluster c.yaml --consistency asp:8:50 --quiet
[ "$(field even clocks_skipped)" = 0 ] || fail "jitter and bursts: $(field even clocks_skipped) clocks are left out"

# Blocks move to the others instead, where rows and not clocks take the time.
printf 'version: 1\nhosts: [{count: 6}]\ncost: {entry: 20us}\nevents:\n  - slow: {ranks: 2, factor: 4}\n' >c.yaml
# shellcheck disable=SC2086
works moved $run --cluster c.yaml --consistency asp:8:50 --balance dynamic
grep -q 'left out .* clocks.*dynamic gives' moved.err && fail "what is on is recommended: $(cat moved.err)"
[ "$(field moved clocks_skipped)" -le 30 ] || fail "with blocks that move $(field moved clocks_skipped) clocks are left out"
finish
