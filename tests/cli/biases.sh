#!/bin/sh
# Nets without biases (--no-intercept): they stay at 0, however the net is cut and whatever trains it; a net without hidden layers is the
# linear model without an intercept; a saved model and a graph that have biases are refused.
. "$(dirname "$0")/common.sh"

iris=$data/small/iris.csv
net="train --data $iris --model mlp --layers 8 --no-intercept --epochs 6 --seed 1 --quiet --json --out model"
for setting in "" "--optimizer lbfgs" "--workers 4 --cut 2" "--workers 2 --columns 2" "--sampled 2" "--micro-batches 4" "--loss squared" \
    "--workers 4 --topology ps --consistency async --optimizer momentum" "--workers 3 --topology allreduce --optimizer-state sharded" \
    "--workers 4 --topology ps --backup 1" "--workers 3 --topology gossip:ring" "--workers 3 --topology ps --filter topk:0.2"; do
    # shellcheck disable=SC2086
    works net $net $setting
    works seen inspect model --weights
    ! grep '^b' seen.out || fail "$setting: a bias is not 0" # what is 0 is not listed
    grep -q '^w2' seen.out || fail "$setting: no second layer"
done
for pair in "--workers 4 --cut 2" "--workers 2 --topology ps"; do
    # shellcheck disable=SC2086
    works one $net --reduce exact
    # shellcheck disable=SC2086
    works other $net --reduce exact $pair
    [ "$(field one model_hash)" = "$(field other model_hash)" ] || fail "$pair: another model"
done

words="--data $iris --optimizer lbfgs --tolerance 1e-10 --no-intercept --l2 0.01 --quiet --json"
# shellcheck disable=SC2086
works linear train --model logistic $words
# shellcheck disable=SC2086
works layer train --model mlp --layers '' $words
awk -v a="$(field linear objective)" -v b="$(field layer objective)" 'BEGIN { d = a / b - 1; exit !(d < 1e-4 && d > -1e-4) }' ||
    fail "a layer without biases is at $(field layer objective), the linear model at $(field linear objective)"

works biased train --data "$iris" --model mlp --layers 8 --epochs 2 --quiet --out biased.model
# shellcheck disable=SC2086
exits 2 'biased.model has biases' init $net --init-model biased.model
# shellcheck disable=SC2086
works goes $net --init-model model
cat >net.json <<'JSON'
{"plait_graph": 1, "nodes": [
{"name": "x", "op": "placeholder", "shape": [null, 4]}, {"name": "w", "op": "variable", "shape": [4, 3], "initial": "glorot"},
{"name": "scores", "op": "matmul", "inputs": ["x", "w"]}]}
JSON
exits 2 'no-intercept with model graph is refused: its file says' graph train --data "$iris" --graph net.json --no-intercept
finish
