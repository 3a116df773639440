#!/bin/sh
# The metrics file: a line a rank, then clocks and epochs, then the end; each line one JSON object.
. "$(dirname "$0")/common.sh"

works run train --data part --optimizer adagrad --epochs 3 --workers 2 --servers 1 --topology ps --metrics m --out model --quiet
[ "$(grep -c '"event": "start"' m)" -eq 3 ] || fail "not one start line a rank"
for rank in 0 1 2; do grep -q "\"event\": \"start\", \"rank\": $rank, \"host\": \"[^\"]*\", \"pid\": [0-9]" m || fail "no start of rank $rank"; done
[ "$(grep -c '"event": "epoch"' m)" -eq 3 ] || fail "$(grep -c '"event": "epoch"' m) epochs instead of 3"
grep -q '"event": "clock"' m || fail "no clock"
tail -n 1 m | grep -q '"event": "end", "status": "success"' || fail "does not end well: $(tail -n 1 m)"
grep -qi 'nan\|inf' m && fail "a number that JSON does not know"
if command -v python3 >/dev/null; then
    python3 -c 'import json,sys
for line in open("m"): assert isinstance(json.loads(line)["event"], str)
record = json.load(open("model.done"))
assert record["clocks"] > 0 and len(record["model_hash"]) == 64 and record["ranks_lost"] == [] and record["run"], record' ||
        fail "a line is no JSON"
fi
# Moments of the run: none twice, the last is the record's; and where each worker's time went.
works curve train --data part --optimizer adagrad --epochs 3 --workers 2 --topology ps --consistency ssp:1 --metrics m --curve 8 --json --quiet
grep '"event": "point"' m >points
[ "$(wc -l <points)" -eq 9 ] || fail "$(wc -l <points) points instead of 8 and the end"
[ "$(sed 's/.*"clock": \([0-9]*\),.*/\1/' points | sort -n -u | wc -l)" -eq 9 ] || fail "a clock twice"
end=$(sed -n '$s/.*"objective": \([^,}]*\).*/\1/p' points)
grep -q "\"objective\": $end," curve.out || fail "the last point, $end, is not the record's objective"
[ "$(grep -c '"event": "rank", "rank": [01], "compute_seconds": [0-9.e-]*, "wait_seconds": [0-9.e-]*, "network_seconds": [0-9.e-]*}' m)" -eq 2 ] ||
    fail "not where two workers' time went: $(grep '"rank"' m)"
code=0
"$PLAIT" train --data gone --metrics m --quiet 2>err || code=$?
[ $code -eq 1 ] || fail "exit $code of a run without data"
tail -n 1 m | grep -q '"event": "end"' || fail "a failed run has no end"
exits 1 'nowhere/m' nowhere train --data part --metrics nowhere/m
finish
