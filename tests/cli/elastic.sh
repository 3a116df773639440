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
# Blocks change hands, too.
# shellcheck disable=SC2086
works leased $options --balance dynamic --workers 2:4 --scale 1:4,9:2,30:3,61:4 --out leased.model --events leased.events
cmp fixed.model leased.model || fail "--balance dynamic: other bits"
works proven audit leased.events
# Nobody ever comes.
# shellcheck disable=SC2086
works vacant $options --workers 2:3 --out vacant.model
cmp fixed.model vacant.model || fail "a vacant slot: other bits"
# The shards of a wider net move with the workers: the same bits, slowly too, and who dies takes none with it.
wide="train --data $data/digits/digits.csv.gz --label -1 --model mlp --layers 1024 --epochs 2 --batch 100 --topology ps --replicas 2 --reduce exact --blocks 70 --quiet --json"
# shellcheck disable=SC2086
works wide $wide --workers 2 --out wide.model
[ "$(field wide shards_moved)" = null ] || fail "a run without slots says that $(field wide shards_moved) shards moved"
for rate in 0 200K; do
    # shellcheck disable=SC2086
    works moved $wide --workers 2:4 --scale 3:4,20:3,28:4 --move-rate $rate --out moved.model --events moved.events
    cmp wide.model moved.model || fail "--move-rate $rate: other bits"
    works proven audit moved.events
done
net="train --data $data/digits/digits.csv.gz --label -1 --model mlp --layers 16 --epochs 1 --topology ps --replicas 2 --reduce exact --blocks 70 --quiet"
# shellcheck disable=SC2086
works net $net --workers 2 --out net.model
# shellcheck disable=SC2086
works grown $net --workers 2:4 --scale 9:4,20:2 --out grown.model
cmp net.model grown.model || fail "a net: other bits"
simulated=no
if "$PLAIT" train --data train.svm --transport sim --workers 2 --epochs 1 --quiet >sim.out 2>sim.err; then
    # shellcheck disable=SC2086
    works simulated $options --transport sim --workers 60:70 --scale 20:70,50:60 --out sim.model
    cmp fixed.model sim.model || fail "60 to 70 to 60 simulated workers: other bits"
    simulated=yes
    # Those who come get their share, so clocks are no longer than if nothing moved; a rank dies as they come, another as they go.
    for dies in "" "  - kill: {ranks: 2, at: 21 ms}" "  - kill: {ranks: 1, at: 43 ms}"; do
        printf 'version: 1\nhosts: [{count: 4}]\ncost: {clock: 1 ms}\nevents:\n  - join: {ranks: 2-3, at: 20 ms}\n  - leave: {ranks: 3, at: 42 ms}\n%s\n' "$dies" >moves.yaml
        # shellcheck disable=SC2086
        works moved $wide --transport sim --cluster moves.yaml --workers 2:4 --epochs 3 --out moved.model --events moved.events
        works proven audit moved.events
        [ "$(field moved shards_moved)" -gt 0 ] && [ "$(field moved moved_bytes)" -gt 0 ] || fail "$dies: no shard moved: $(cat moved.out)"
        echo "$dies: $(field moved shards_moved) shards, $(field moved moved_bytes) bytes, $(field moved virtual_seconds) s"
        [ -n "$dies" ] || cp moved.model still.model
        cmp still.model moved.model || fail "$dies: other bits"
    done
else
    grep -qi 'simgrid' sim.err || fail "sim: $(cat sim.err)" # a build without it says what installs it
fi

# With validation and an early end; with a checkpoint of each few clocks, which workers that come and go are part of: the
# same figures. The workers that are away when the run ends early are not waited for.
same_figures() { # NAME OTHER: the JSON reports, but for how fast and by how many
    sed 's/.*"objective"/"objective"/; s/"[a-z_]*\(seconds\|bytes\|sent\|moved\)[a-z_]*": [^,}]*//g; s/"idle_share": [^,}]*//; s/"clocks_per_second": [^,}]*//' "$1" >"$1.figures"
    sed 's/.*"objective"/"objective"/; s/"[a-z_]*\(seconds\|bytes\|sent\|moved\)[a-z_]*": [^,}]*//g; s/"idle_share": [^,}]*//; s/"clocks_per_second": [^,}]*//' "$2" >"$2.figures"
    cmp "$1.figures" "$2.figures" || fail "$2: other figures: $(diff "$1.figures" "$2.figures")"
}
near() { # NAME OTHER SOLVER: both converge, and their objectives differ by twice the tolerance at most
    [ "$(field "$2" converged)" = true ] || fail "$3: $2 does not converge"
    awk -v x="$(field "$2" objective)" -v y="$(field "$1" objective)" -v t="$(echo "$3" | sed 's/.*--tolerance \([^ ]*\).*/\1/')" \
        'BEGIN { d = x / y - 1; exit !(d < 2 * t && d > -2 * t) }' || fail "$3: $2 ends at $(field "$2" objective) instead of $(field "$1" objective)"
}
judged="$options --validation 0.1 --schedule constant --learning-rate 3 --json"
# shellcheck disable=SC2086
works early $judged --epochs 12 --patience 1 --workers 2 --out early.model
grep -q '"stopped_early": true' early.out || fail "the run did not end early"
for scale in 1:4,30:2 5:4 13:3,14:4,15:3,16:2,41:4; do
    for more in "--curve 4" "--checkpoint kept --checkpoint-every 1" "--checkpoint kept --checkpoint-every 7"; do
        rm -rf kept
        # shellcheck disable=SC2086
        works judged $judged --epochs 12 --patience 1 --workers 2:4 --scale $scale $more --out judged.model
        cmp early.model judged.model || fail "--scale $scale $more: other bits"
        same_figures early.out judged.out
    done
done
# A run that resumes goes on by its own plan, whoever was in when it was kept.
# shellcheck disable=SC2086
works whole $judged --workers 3 --out whole.model
for scale in 1:3,30:2 20:4,35:3; do
    for then in 40:2 5:4,50:3 79:3; do
        rm -rf kept
        # shellcheck disable=SC2086
        works part $judged --epochs 2 --workers 2:4 --scale $scale --checkpoint kept --checkpoint-every 13
        rm -rf kept/checkpoint-*39 kept/checkpoint-*40
        # shellcheck disable=SC2086
        works rest $judged --workers 2:4 --scale $then --resume kept --checkpoint kept --checkpoint-every 9 --out rest.model
        cmp whole.model rest.model || fail "--scale $scale, then $then: other bits"
        same_figures whole.out rest.out
    done
done
grep -q '"in":' kept/checkpoint-*/manifest.json || fail "a manifest does not say who was in"
# Learners whose tables add.
for model in "bayes --batch 100" "kmeans --clusters 5 --batch 300 --epochs 3" "pca --components 4 --pca-solver randomised" "lda --components 4 --batch 300 --epochs 3"; do
    adds="train --data train.svm --model $model --topology ps --replicas 2 --reduce exact --blocks 140 --quiet"
    # shellcheck disable=SC2086
    works adds $adds --workers 2 --out adds.model
    # shellcheck disable=SC2086
    works moved $adds --workers 2:4 --scale 1:3,3:4,16:2,29:4 --out moved.model --events moved.events
    cmp adds.model moved.model || fail "$model: other bits"
    works proven audit moved.events
done
# Solvers whose workers know something of each row of theirs: they end as near to the least objective, and the audit proves them,
# zeroed tables included. --resume goes on with other workers.
for solver in "logistic --optimizer newton --tolerance 1e-6" "logistic --optimizer newton --hash-bits 14 --tolerance 1e-6" "hinge --optimizer cd --l2 0.001 --tolerance 1e-4"; do
    solves="train --data train.svm --model $solver --topology ps --replicas 2 --quiet --json"
    # shellcheck disable=SC2086
    works solved $solves --workers 2
    for scale in 2:4,5:3,9:2,40:4,200:3; do
        rm -rf kept
        # shellcheck disable=SC2086
        works moved $solves --workers 2:4 --scale $scale --events moved.events
        near solved moved "$solver"
        works proven audit moved.events
    done
    # shellcheck disable=SC2086
    works part $solves --workers 2:4 --scale 1:4,2:3,3:4 --epochs 7 --checkpoint kept --checkpoint-every 5
    # shellcheck disable=SC2086
    works rest $solves --workers 2:3 --scale 9:3 --resume kept
    near solved rest "$solver"
done
# By doors (src/learn/solve/doors.h): between iterations, rounds, looks. The same bits where sums are exact, with checkpoints, too;
# --resume goes on with other workers.
for solver in "logistic --optimizer lbfgs --reduce exact" "logistic --optimizer lbfgs --reduce exact --l1 0.001 --epochs 30" \
    "mlp --layers 8 --optimizer lbfgs --reduce exact --epochs 12" "gbdt --epochs 6" "gbdt --epochs 5 --trees-by features" \
    "forest --epochs 5 --subsample 0.5" "forest --epochs 5 --trees-by features"; do
    solves="train --data train.svm --model $solver --topology ps --replicas 2 --blocks 140 --quiet"
    # shellcheck disable=SC2086
    works solved $solves --workers 3 --out solved.model
    for scale in 1:4,8:3,20:2,30:4 7:3,9:4,15:2; do
        rm -rf kept
        # shellcheck disable=SC2086
        works moved $solves --workers 2:4 --scale $scale --out moved.model --events moved.events --checkpoint kept --checkpoint-every 20
        cmp solved.model moved.model || fail "$solver, --scale $scale: other bits"
        works proven audit moved.events
    done
    rm -rf kept
    # shellcheck disable=SC2086
    works part $solves --workers 2:4 --scale 1:4 --epochs 3 --checkpoint kept --checkpoint-every 1
    # shellcheck disable=SC2086
    works rest $solves --workers 2:3 --scale 9:3,30:2,50:3 --resume kept --out rest.model
    cmp solved.model rest.model || fail "$solver, resumed: other bits"
done
# With --balance dynamic, rows of trees and of topics change hands besides: between two rounds, or two epochs.
for model in "gbdt --epochs 8" "forest --epochs 6 --subsample 0.5" "lda --components 4 --batch 300 --epochs 4 --reduce exact"; do
    rows="train --data train.svm --model $model --topology ps --replicas 2 --blocks 140 --quiet"
    # shellcheck disable=SC2086
    works rows $rows --workers 3 --out rows.model
    # shellcheck disable=SC2086
    works moved $rows --workers 2:4 --scale 1:4,8:3,20:2,30:4 --balance dynamic --out moved.model --events moved.events
    cmp rows.model moved.model || fail "$model --balance dynamic: other bits"
    works proven audit moved.events
done
# In simulated time the cluster's file may say when.
cat >doors.yaml <<.
version: 1
hosts: [{count: 4}]
cost: {clock: 10 ms}
events:
  - join: {ranks: 2-3, at: 60 ms}
  - leave: {ranks: 1, at: 200 ms}
  - join: {ranks: 1, at: 500 ms}
.
for solver in "gbdt --epochs 6" "logistic --optimizer lbfgs --reduce exact" "forest --epochs 3 --trees-by features"; do
    [ "$simulated" = yes ] || break
    solves="train --data train.svm --model $solver --topology ps --replicas 2 --blocks 140 --quiet"
    # shellcheck disable=SC2086
    works solved $solves --workers 3 --out solved.model
    # shellcheck disable=SC2086
    works moved $solves --workers 2:4 --transport sim --cluster doors.yaml --out moved.model --events moved.events
    cmp solved.model moved.model || fail "$solver in simulated time: other bits"
    works proven audit moved.events
done
# Coordinates end at the same optimum; the schedule's audit proves the steps. With --balance dynamic blocks change hands besides.
for solver in "logistic --optimizer cd --l1 0.01 --tolerance 1e-6" "squared --optimizer cd --l1 0.01 --path 4 --tolerance 1e-6" \
    "logistic --optimizer cd --l1 0.01 --path 3 --validation 0.2 --tolerance 1e-6" "logistic --optimizer cd --l1 0.002 --hash-bits 10 --tolerance 1e-6" \
    "logistic --optimizer cd --l1 0.01 --tolerance 1e-6 --balance dynamic" "logistic --optimizer newton --tolerance 1e-6 --balance dynamic" \
    "hinge --optimizer cd --l2 0.001 --tolerance 1e-4 --balance dynamic" "logistic --optimizer lbfgs --tolerance 1e-6 --balance dynamic"; do
    solves="train --data train.svm --model $solver --topology ps --replicas 2 --quiet --json"
    # shellcheck disable=SC2086
    works solved $solves --workers 2
    for scale in 1:4,5:3,9:2,40:4,200:3 3:3,30:4,60:2; do
        # shellcheck disable=SC2086
        works moved $solves --workers 2:4 --scale $scale --events moved.events
        near solved moved "$solver"
        works proven audit moved.events
    done
    case $solver in logistic*--l1*) works scheduled audit --schedule moved.events ;; esac
done
# Row by row: what rows have taught lies in the tables. The loss is that of a fixed run, or nearly; more workers in the review than
# in most of the pass do not overshoot.
for online in "logistic --epochs 1" "squared --epochs 1" "squared --epochs 3" "hinge --epochs 1 --hash-bits 14 --filter key-cache,zstd"; do
    rows="train --data train.svm --model $online --optimizer online --batch 64 --topology ps --replicas 2 --quiet --json"
    # shellcheck disable=SC2086
    works rows $rows --workers 2
    for scale in 10:4 10:4,20:3,30:2,50:4 5:4,40:2; do
        # shellcheck disable=SC2086
        works moved $rows --workers 2:4 --scale $scale --events moved.events
        works proven audit moved.events
        awk -v x="$(field moved train_loss)" -v y="$(field rows train_loss)" 'BEGIN { exit !(x < 1.1 * y) }' ||
            fail "online, $online, --scale $scale: a loss of $(field moved train_loss), not $(field rows train_loss)"
    done
done
# Factors: each side solved in turn; and by steps, whose blocks rotate over all slots, as the schedule's audit proves.
awk 'BEGIN { s = 3; for (i = 0; i < 3000; i++) { s = (s * 16807) % 2147483647; u = s % 100; s = (s * 16807) % 2147483647
    print "u" u, "i" s % 40, 3 + sin(u) * cos(s % 40) } }' >ratings
for solver in als sgd; do
    factors="train --data ratings --model mf --optimizer $solver --components 4 --epochs 5 --topology ps --replicas 2 --quiet"
    # shellcheck disable=SC2086
    works factors $factors --workers 4 --out factors.model
    # shellcheck disable=SC2086
    works moved $factors --workers 2:4 --scale 1:4,3:3,4:2,7:4,33:3 --out moved.model --events moved.events
    cmp factors.model moved.model || fail "mf by $solver: other bits"
    works proven audit moved.events
    [ $solver = als ] || works proven audit --schedule moved.events
done
# Filters: what a worker that leaves has kept back goes with its last clock; the audit proves the rest.
for filter in key-cache,zstd fixed8 topk:0.05 onebit; do
    # shellcheck disable=SC2086
    works filtered train --data train.svm --model logistic --optimizer adam --epochs 4 --batch 200 --topology ps --replicas 2 \
        --blocks 140 --quiet --workers 2:4 --scale 5:4,20:3,40:2,60:4 --filter $filter --events filtered.events --checkpoint filtered --json
    works proven audit filtered.events
    rm -rf filtered
done

elastic="train --data train.svm --model logistic --optimizer adam --topology ps --replicas 2 --workers 2:4"
exits 2 "2 slots of workers that may join without replicas are refused: .*; nearest are 2 replicas" copies train --data train.svm --model logistic --workers 2:4
# shellcheck disable=SC2086
exits 2 "with topology ps x ssp:2 are refused: .*; nearest is ps x bsp" stale $elastic --consistency ssp:2
exits 2 "move-rate without --workers MIN:MAX is refused: .*; nearest is --workers 2:4" rate train --data train.svm --model logistic --topology ps --workers 2 --move-rate 1M
# shellcheck disable=SC2086
exits 2 "move-rate with --servers is refused: they keep all shards; nearest is" rate $elastic --servers 2 --move-rate 1M
# shellcheck disable=SC2086
exits 2 "with spares are refused: .*; leave --spares out" spares $elastic --spares 1
exits 2 "option --workers: '4:2' is not a number from 1 to 65536, nor MIN:MAX with MIN <= MAX, as 2:4" order train --data train.svm --workers 4:2
# shellcheck disable=SC2086
exits 2 "scale '5:9': 9 workers from clock 5 on; expected 2 to 4" most $elastic --scale 5:9
# shellcheck disable=SC2086
exits 2 "scale '5:3,5:4': expected CLOCK:WORKERS,... with ascending clocks above 0" clocks $elastic --scale 5:3,5:4
# shellcheck disable=SC2086
exits 2 "scale '5:3': with --workers 2 nobody can come or go; expected --workers MIN:MAX" fixed $options --workers 2 --scale 5:3
finish
