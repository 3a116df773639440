#!/bin/sh
# A run that ends well and is wrong says so: steps too large, workers that did not run together.
. "$(dirname "$0")/common.sh"

sort part >sorted
warned() { grep -q 'warning: some workers ran far ahead of others.*--consistency ssp:2' "$1.err"; }

# Under a policy without a bound one of many workers on few rows ends before another begins, sooner or later. The
# objective of a net has many least points, so two signs are asked.
tries=0
while [ $tries -lt 30 ]; do
    works async train --data sorted --model mlp --layers 8 --workers 16 --topology ps --consistency async
    warned async && break
    tries=$((tries + 1))
done
warned async || fail "nobody ever ran ahead, or it is not told"
for consistency in bsp ssp:2; do
    works bound train --data sorted --model mlp --layers 8 --workers 16 --topology ps --consistency $consistency
    grep -q 'warning' bound.err && fail "a warning under $consistency: $(grep warning bound.err)"
done

# A linear model has one least point: the warning follows how far the objective lies above it, whatever the sign of it.
works best train --data sorted --optimizer lbfgs --tolerance 1e-7 --epochs 3000 --json
told=0 silent=0
for setting in adagrad/ps/async adagrad/gossip:ring/async sgd/gossip:ring/async sgd/ps/async \
    adagrad/ps/ssp:2 sgd/ps/ssp:2 auto/ps/async auto/local/async; do
    rest=${setting#*/}
    works gap train --data sorted --workers 16 --optimizer "${setting%%/*}" --topology "${rest%%/*}" \
        --consistency "${rest#*/}" --json
    is=silent
    grep -q 'warning: the objective is [0-9.]* times the least that a few more passes find.*more --epochs$' gap.err && is=told
    remedy='ssp:2 or bsp' # what goes with the topology
    case $setting in */ssp:2) remedy=bsp ;; */gossip:*) remedy=bsp ;; esac
    [ $is = silent ] || grep -q -- "; take --consistency $remedy, or more --epochs$" gap.err ||
        fail "$setting: the remedy is not $remedy: $(grep warning gap.err)"
    [ $is = told ] && told=$((told + 1)) || silent=$((silent + 1))
    times=$(sed -n 's/.*warning: the objective is \([0-9.]*\) times.*/\1/p' gap.err)
    [ $is = silent ] || awk -v times="$times" -v x="$(field gap objective)" -v best="$(field best objective)" \
        'BEGIN { exit !(times <= 1.01 * x / best && times - 1 >= (x / best - 1) / 8) }' ||
        fail "$setting: said to be $times times the least, at $(field gap objective), where $(field best objective) is the least"
    awk -v is=$is -v x="$(field gap objective)" -v best="$(field best objective)" \
        'BEGIN { exit is == "told" ? x < 1.01 * best : x > 1.05 * best }' ||
        fail "$setting: $is, at an objective of $(field gap objective) where $(field best objective) is the least"
done
[ $told -ge 2 ] && [ $silent -ge 3 ] || fail "$told settings warn, $silent do not"
works alone train --data sorted --optimizer sgd --topology ps --consistency async
grep -q 'warning' alone.err && fail "a warning of a single worker: $(grep warning alone.err)"
# Counts are the same however far apart the workers ran.
tries=0
while [ $tries -lt 10 ]; do
    works counts train --model bayes --data "$data/small/iris.csv" --label -1 --workers 2 --topology ps --consistency ssp:2
    grep -q 'warning' counts.err && fail "a warning of a model that counts: $(grep warning counts.err)"
    tries=$((tries + 1))
done

works far train --data part --optimizer sgd --learning-rate 2000 --schedule constant --normalize none --epochs 3
grep -q 'warning: the objective is .* always gives the same answer .*steps were too large for features that are not scaled; take --normalize auto, or a smaller --learning-rate$' far.err || fail "a run that went astray is not told: $(tail -n 2 far.err)"
works far train --data part --optimizer sgd --learning-rate 2000 --schedule constant --epochs 3
grep -q 'warning: .*steps were too large; take a smaller --learning-rate$' far.err || fail "the cause is not told: $(tail -n 2 far.err)"
# A net begins with drawn weights, worse than nothing: one whose loss falls has not come far.
works near train --data part --model mlp --layers 64 --learning-rate 1e-6 --epochs 1
grep -q 'warning: .*the loss was still falling; take more --epochs, or a larger --learning-rate$' near.err || fail "a slow run is told the wrong way: $(grep warning near.err)"
# If the loss itself is low, the penalty makes the difference.
works heavy train --data "$data/small/iris.csv" --model mlp --l2 0.05 --epochs 5
grep -q 'warning: .*of which the penalty of the weights is [0-9.]*, .*take a smaller --l2, or more --epochs$' heavy.err || fail "a heavy penalty is not told: $(grep warning heavy.err)"
works quiet train --data part --optimizer sgd --learning-rate 2000 --schedule constant --normalize none --epochs 3 --quiet
[ -s quiet.err ] && fail "--quiet is not"
finish
