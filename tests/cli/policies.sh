#!/bin/sh
# The pictures of docs/consistency.md: a simulated run's event log has simulated times, and its reader reads it.
# usage: policies.sh BUILD
. "$(dirname "$0")/common.sh"
command -v python3 >/dev/null || skip "no python3"
root=$(cd "$(dirname "$0")/../.." && pwd)
PLAIT_BENCH_BUILD=$1
export PLAIT_BENCH_BUILD
python3 "$root/bench/policies" pictures --short --docs . >out 2>&1 || fail "bench/policies: $(cat out)"

# Eight workers whose clocks take 0.1 s and more cannot end more than 480 in 6 s, and end half of these under bsp.
clocks=$(sed -n 's/^bsp *\([0-9]*\) clocks.*/\1/p' out)
[ "${clocks:-0}" -ge 150 ] && [ "$clocks" -le 480 ] || fail "bsp: '$clocks' clocks in 6 s: $(cat out)"
grep -q '% waiting' bsp.svg || fail "the picture does not say how long was waited"
finish
