#!/bin/sh
# plait checkpoint list, verify, inspect.
. "$(dirname "$0")/../acceptance/common.sh"
writer=${1:?the program that writes}
"$writer" write c 1 3 >/dev/null # keeps 2 and 3
two=c/checkpoint-000000000002 three=c/checkpoint-000000000003

works list checkpoint list c
[ "$(cut -f 1,2,3,4 list.out)" = "checkpoint-000000000002	clock 2	complete	3 parts
checkpoint-000000000003	clock 3	complete	3 parts" ] || fail "list: $(cat list.out)"
works list checkpoint --json list c/
grep -q '^{"checkpoints": \[{"name": "checkpoint-000000000002", "clock": 2, "state": "complete", "parts": 3,' list.out || fail "list --json: $(cat list.out)"
works one checkpoint list $two/
[ "$(wc -l <one.out)" -eq 1 ] || fail "list of one: $(cat one.out)"
works verify checkpoint verify c
[ "$(cut -f 3 verify.out | tr '\n' ' ')" = 'good good ' ] || fail "verify: $(cat verify.out)"
[ -s verify.err ] && fail "verify talks of what is good: $(cat verify.err)"

works inspect checkpoint inspect c
for line in 'clock	3' 'parts	3' 'table	w	F32	27000 x 16	dense' 'tensor	w.values	F32	27000 x 16	3 pieces' 'meta	epoch	1'; do
    grep -qxF "$line" inspect.out || fail "inspect does not say '$line': $(cat inspect.out)"
done
cd c
works ../inspect checkpoint inspect checkpoint-000000000002
cd ..
grep -qx 'clock	2' inspect.out || fail "inspect of one: $(cat inspect.out)"
works json checkpoint inspect $two --json
grep -q '"clock": 2, .*"tensors": \[{"name": "w.values", "type": "F32", "shape": \[27000, 16\], "pieces": 3}\], "meta": {"epoch":1}}$' json.out || fail "inspect --json: $(cat json.out)"

# One bit of a tensor; then the newest is passed over, by name.
printf '\001' | dd of=$three/part-00001-of-00003.safetensors bs=1 seek=1000 conv=notrunc 2>/dev/null
works list checkpoint list c
exits 4 'checkpoint-000000000003: .*part-00001-of-00003.safetensors: tensor w.values: altered' verify checkpoint verify c
[ "$(cut -f 3 verify.out | tr '\n' ' ')" = 'good damaged ' ] || fail "verify of a damaged one: $(cat verify.out)"
exits 4 'tensor w.values' verify checkpoint verify $three --json
grep -q '"state": "damaged", .*"reason": ".*tensor w.values: altered' verify.out || fail "verify --json: $(cat verify.out)"
works good checkpoint verify $two
exits 0 'skipped' inspect checkpoint inspect c
grep -qx 'clock	2' inspect.out || fail "the one before is not shown: $(cat inspect.out)"
exits 1 'tensor w.values' inspect checkpoint inspect $three

# One that was not written to its end is no damage, but does not count either.
rm $three/manifest.json
exits 0 'was not written to its end' unfinished checkpoint verify c
exits 1 'none of its checkpoints was written to its end' unfinished checkpoint verify $three
exits 1 'No such file' unfinished checkpoint inspect $three
: >$two/manifest.json
exits 0 'altered or cut short' cut checkpoint list c
grep -q 'damaged' cut.out || fail "list of a damaged manifest: $(cat cut.out)"
exits 1 'none of its checkpoints is good' none checkpoint inspect c

mkdir empty other
exits 1 'holds no checkpoint; train --checkpoint' none checkpoint verify empty
: >other/manifest.json
exits 1 'must keep its name' renamed checkpoint inspect other
exits 1 'nothere' gone checkpoint list nothere
exits 2 "did you mean 'verify'" word checkpoint verfy c
exits 2 'known are: list, verify, inspect' word checkpoint frobnicate c
exits 2 'no directory' word checkpoint list
exits 2 'more than one' word checkpoint list c c
exits 2 'list|verify|inspect' word checkpoint
exits 2 'did you mean --json' option checkpoint list c --jsn
finish
