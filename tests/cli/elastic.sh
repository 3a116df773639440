#!/bin/sh
# Workers that come and go (--workers MIN:MAX --scale): the bits of a fixed run, proven by the audit, and what is refused.
. "$(dirname "$0")/common.sh"

gzip -dc "$data/a9a/a9a.gz" | head -n 4000 >train.svm
options="train --data train.svm --model logistic --optimizer adam --epochs 4 --batch 200 --topology ps --replicas 2 --reduce exact --blocks 140 --quiet"

# shellcheck disable=SC2086
works fixed $options --workers 2 --out fixed.model
# shellcheck disable=SC2086
works grown $options --workers 2:4 --scale 10:4,40:3 --out grown.model --events grown.events
cmp fixed.model grown.model || fail "2 to 4 to 3 workers: other bits"
works proven audit grown.events
# Back and forth, to the last clock and beyond the end.
# shellcheck disable=SC2086
works again $options --workers 2:5 --scale 1:5,2:2,30:3,31:5,79:2,500:4 --out again.model --events again.events
cmp fixed.model again.model || fail "back and forth: other bits"
works proven audit again.events
# Nobody ever comes.
# shellcheck disable=SC2086
works vacant $options --workers 2:3 --out vacant.model
cmp fixed.model vacant.model || fail "a vacant slot: other bits"
net="train --data $data/digits/digits.csv.gz --label -1 --model mlp --layers 16 --epochs 1 --topology ps --replicas 2 --reduce exact --blocks 70 --quiet"
# shellcheck disable=SC2086
works net $net --workers 2 --out net.model
# shellcheck disable=SC2086
works grown $net --workers 2:4 --scale 9:4,20:2 --out grown.model
cmp net.model grown.model || fail "a net: other bits"
if "$PLAIT" train --data train.svm --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>sim.err; then
    # shellcheck disable=SC2086
    works simulated $options --transport sim --workers 60:70 --scale 20:70,50:60 --out sim.model
    cmp fixed.model sim.model || fail "60 to 70 to 60 simulated workers: other bits"
else
    grep -qi 'simgrid' sim.err || fail "sim: $(cat sim.err)" # a build without it says what installs it
fi

elastic="train --data train.svm --model logistic --optimizer adam --topology ps --replicas 2 --workers 2:4"
exits 2 "2 slots of workers that may join without replicas are refused: .*; nearest are 2 replicas" copies train --data train.svm --model logistic --workers 2:4
# shellcheck disable=SC2086
exits 2 "with topology ps x ssp:2 are refused: .*; nearest is ps x bsp" stale $elastic --consistency ssp:2
# shellcheck disable=SC2086
exits 2 "with filters are refused: .*; nearest is no filter" filter $elastic --filter zstd
# shellcheck disable=SC2086
exits 2 "with spares are refused: .*; leave --spares out" spares $elastic --spares 1
# shellcheck disable=SC2086
exits 2 "with a checkpoint are refused: .*; nearest is a fixed number of workers" kept $elastic --checkpoint kept
# shellcheck disable=SC2086
exits 2 "slots of workers that may join with newton are refused: .*; nearest are gradient steps" solver $elastic --optimizer newton
# shellcheck disable=SC2086
exits 2 "with validation are refused: .*; leave it out" judged $elastic --validation 0.1
exits 2 "option --workers: '4:2' is not a number from 1 to 65536, nor MIN:MAX with two of them, as 2:4" order train --data train.svm --workers 4:2
# shellcheck disable=SC2086
exits 2 "scale '5:9': 9 workers from clock 5 on; expected 2 to 4" most $elastic --scale 5:9
# shellcheck disable=SC2086
exits 2 "scale '5:3,5:4': expected CLOCK:WORKERS,... with ascending clocks above 0" clocks $elastic --scale 5:3,5:4
finish
