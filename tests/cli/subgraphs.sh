#!/bin/sh
# plait train --exclude and --train: variables that are left out keep their bits, under every topology, and the others
# learn what they learn without them.
. "$(dirname "$0")/common.sh"

iris=$data/small/iris.csv
cat >net.json <<'END'
{"plait_graph": 1, "nodes": [
{"name": "x", "op": "placeholder", "shape": [null, 4]}, {"name": "noise", "op": "placeholder", "shape": [null, 2]},
{"name": "w1", "op": "variable", "shape": [4, 16], "initial": "he"}, {"name": "b1", "op": "variable", "shape": [16]},
{"name": "w2", "op": "variable", "shape": [16, 3], "initial": "glorot"}, {"name": "b2", "op": "variable", "shape": [3]},
{"name": "wa", "op": "variable", "shape": [2, 2], "initial": {"normal": 1}},
{"name": "p1", "op": "matmul", "inputs": ["x", "w1"]}, {"name": "s1", "op": "add", "inputs": ["p1", "b1"]},
{"name": "h", "op": "relu", "inputs": ["s1"]},
{"name": "p2", "op": "matmul", "inputs": ["h", "w2"]}, {"name": "scores", "op": "add", "inputs": ["p2", "b2"]},
{"name": "aux", "op": "matmul", "inputs": ["noise", "wa"]}],
"subgraphs": {"body": ["p1", "s1", "h"], "head": ["p2", "scores"], "side": ["aux", "noise"]}}
END
weights() { # weights MODEL VARIABLES: of a model's file
    "$PLAIT" inspect --weights "$1" | grep "^\($2\) " >"$1.$(echo "$2" | tr -d '\\|')"
    [ -s "$1.$(echo "$2" | tr -d '\\|')" ] || fail "$1 has no $2"
}
same() { cmp -s "$1.$3" "$2.$3" || fail "$4: $3 has changed"; }
changed() { ! cmp -s "$1.$3" "$2.$3" || fail "$4: $3 has not changed"; }

set -- --graph net.json --data "$iris" --quiet --json --epochs 2 --l2 0.01
works begin train "$@" --exclude side --out begin.model
for v in w1 b1 w2 b2 wa; do weights begin.model $v; done

# What is not trained keeps its bits, although there is a penalty.
for how in '--workers 1' '--workers 1 --optimizer sgd' '--workers 2 --optimizer sgd --topology ps --consistency async' \
    '--workers 2 --topology allreduce' '--workers 2 --topology ps --consistency ssp:2' \
    '--workers 2 --topology ps --optimizer adam' '--workers 2 --reduce exact' '--workers 2 --topology gossip:ring' \
    '--workers 2 --cut 2 --micro-batches 2'; do
    # shellcheck disable=SC2086
    works head train "$@" $how --init-model begin.model --train head --exclude side --out head.model
    for v in w1 b1 w2 b2 wa; do weights head.model $v; done
    for v in w1 b1 wa; do same begin.model head.model $v "$how"; done
    for v in w2 b2; do changed begin.model head.model $v "$how"; done
    # shellcheck disable=SC2086
    works body train "$@" $how --init-model begin.model --train body --out body.model
    for v in w1 b1 w2 b2 wa; do weights body.model $v; done
    for v in w2 b2 wa; do same begin.model body.model $v "$how"; done
    for v in w1 b1; do changed begin.model body.model $v "$how"; done
done

# Without --exclude the penalty shrinks what the scores do not need; what is left out changes nothing for the others.
works whole train "$@" --optimizer sgd --init-model begin.model --out whole.model
works aside train "$@" --optimizer sgd --init-model begin.model --exclude side --out aside.model
for model in whole aside; do for v in w1 b1 w2 b2 wa; do weights $model.model $v; done; done
changed begin.model whole.model wa 'without --exclude'
same begin.model aside.model wa '--exclude side'
for v in w1 b1 w2 b2; do same whole.model aside.model $v '--exclude side, beside none'; done
works predict predict --model-file aside.model --data "$iris"

# The model keeps the subgraphs with its graph, and a saved graph has them again.
works place graph place net.json --ranks 2 --out placed.json
grep -q '"subgraphs": {"body":\["p1","s1","h"\]' placed.json || fail "subgraphs are lost: $(cat placed.json)"

# Refusals.
exits 2 "unknown subgraph 'haed'; did you mean 'head'" near train "$@" --train haed
exits 2 "unknown subgraph 'haed'; did you mean 'head'" early train "$@" --data nowhere.csv --train haed
exits 2 "is to be trained and to be excluded" both train "$@" --train head --exclude head
sed 's/"side": \["aux", "noise"\]/"side": ["noise"]/' net.json >novar.json
exits 2 "no variable lies there" none train --graph novar.json --data "$iris" --train side
exits 2 "is needed but excluded" needed train "$@" --exclude body
exits 2 "optimizer lbfgs with exclude or train is refused" lbfgs train "$@" --train head --optimizer lbfgs
exits 2 "only a graph out of a file has them" linear train --model logistic --data "$iris" --train head
sed 's/"inputs": \["x", "w1"\]/"inputs": ["x", "w1"]/; s/"p2", "op": "matmul", "inputs": \["h", "w2"\]}/"p0", "op": "matmul", "inputs": ["h", "w2"]}, {"name": "n0", "op": "sum", "inputs": ["noise"]}, {"name": "p2", "op": "add", "inputs": ["p0", "n0"]}/' net.json >fed.json
exits 2 "rows are fed only to x" fed train --graph fed.json --data "$iris"
finish
