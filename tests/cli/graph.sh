#!/bin/sh
# plait train --graph: a net out of a file is trained, kept, used and started from as any other; what does not go with the data is
# refused by name before anything runs.
. "$(dirname "$0")/common.sh"

iris=$data/small/iris.csv
cat >net.json <<'END'
{"plait_graph": 1, "nodes": [
{"name": "x", "op": "placeholder", "shape": [null, 4]},
{"name": "w1", "op": "variable", "shape": [4, 16], "initial": "he"},
{"name": "b1", "op": "variable", "shape": [16]},
{"name": "w2", "op": "variable", "shape": [16, 3], "initial": "glorot"},
{"name": "b2", "op": "variable", "shape": [3]},
{"name": "p1", "op": "matmul", "inputs": ["x", "w1"]}, {"name": "s1", "op": "add", "inputs": ["p1", "b1"]},
{"name": "h", "op": "relu", "inputs": ["s1"]},
{"name": "p2", "op": "matmul", "inputs": ["h", "w2"]}, {"name": "scores", "op": "add", "inputs": ["p2", "b2"]}]}
END
hash_of() { sed -n 's/.*"model_hash": "\([0-9a-f]*\)".*/\1/p' "$1.out"; }

# The graph of a perceptron is the perceptron, bit for bit, by the seed; over servers too.
set -- --data "$iris" --epochs 5 --seed 3 --reduce exact --quiet --json
works own train --graph net.json "$@" --out own.model
works mlp train --model mlp --layers 16 --normalize none "$@"
works servers train --graph net.json "$@" --workers 2 --topology ps --table w1:topology=allreduce
works seed train --graph net.json "$@" --seed 4
[ -n "$(hash_of own)" ] || fail "no model hash: $(cat own.out)"
[ "$(hash_of own)" = "$(hash_of mlp)" ] || fail "the graph of an mlp trains another model"
[ "$(hash_of own)" = "$(hash_of servers)" ] || fail "servers train another model"
[ "$(hash_of own)" != "$(hash_of seed)" ] || fail "another seed trains the same model"
grep -q '"model": "graph"' own.out || fail "the record does not say graph: $(cat own.out)"

# The model keeps the graph.
rm -f kept.json
works predict predict --proba --model-file own.model --data "$iris"
[ "$(wc -l <predict.out)" = 150 ] || fail "not a line a row"
works eval eval --model-file own.model --data "$iris" --json
grep -q '"test_accuracy": 0\.[0-9]' eval.out || fail "eval: $(cat eval.out)"
works inspect inspect --weights own.model
grep -q '^w1 3,15	' inspect.out || fail "inspect does not name the variables' values"
works more train --graph net.json --init-model own.model --data "$iris" --epochs 1 --quiet
sed 's/relu/tanh/' net.json >other.json
exits 2 'another graph' init train --graph other.json --init-model own.model --data "$iris"

# Nothing is dropped when rows are scored: twice the same.
sed 's/"inputs": \["h", "w2"\]/"inputs": ["d", "w2"]}, {"name": "d", "op": "dropout", "inputs": ["h"], "attrs": {"rate": 0.5}/' net.json >drop.json
works drop train --graph drop.json --data "$iris" --epochs 5 --out drop.model --quiet
works once predict --proba --model-file drop.model --data "$iris"
works twice predict --proba --model-file drop.model --data "$iris"
cmp -s once.out twice.out || fail "dropout goes on in predict"

exits 2 'lbfgs with dropout is refused' lbfgs train --graph drop.json --data "$iris" --optimizer lbfgs
exits 2 'reduce exact with dropout is refused' exactdrop train --graph drop.json --data "$iris" --reduce exact
works full train --graph net.json --data "$iris" --optimizer lbfgs --quiet

# Two scores of two classes are as one, their difference.
awk -F, 'NR == 1 || $5 < 2' "$iris" | sed '1s/150/100/; 1s/,virginica//' >two.csv
sed 's/\[16, 3\]/[16, 2]/; s/"shape": \[3\]/"shape": [2]/' net.json >pair.json
works pair train --graph pair.json --data two.csv --epochs 30 --json --quiet
grep -q '"train_loss": 0\.[0-3]' pair.out || fail "two scores of two classes: $(cat pair.out)"

# What does not go with the data, or with each other.
sed 's/null, 4/null, 5/; s/\[4, 16\]/[5, 16]/' net.json >wide.json
exits 1 "wide.json: the graph's x is f32\[\?, 5\]: rows of the data have 4 features" wide train --graph wide.json --data "$iris"
exits 1 "pair.json: the graph's scores is f32\[\?, 2\]: each row must have 3 scores" narrow train --graph pair.json --data "$iris"
sed 's/relu/relo/' net.json >typo.json
exits 2 "typo.json:8: node 'h': unknown op 'relo'; did you mean 'relu'" typo train --graph typo.json --data "$iris"
sed 's/"name": "scores"/"name": "points"/' net.json >nameless.json
exits 2 'no value named scores' nameless train --graph nameless.json --data "$iris"
sed 's/"op": "relu"/"op": "batch_norm"/' net.json >batch.json
exits 2 'batch_norm in a net is refused' batch train --graph batch.json --data "$iris"
sed 's/"shape": \[16\]}/"shape": [16], "type": "f64"}/; s/"name": "s1", "op": "add", "inputs": \["p1", "b1"\]/"name": "s1", "op": "add", "inputs": ["p1", "c1"]}, {"name": "c1", "op": "cast", "inputs": ["b1"], "attrs": {"type": "f32"}/' net.json >f64.json
exits 2 "variable 'b1' of type f64 is refused" f64 train --graph f64.json --data "$iris"
exits 2 "unknown table 'w3'" table train --graph net.json --data "$iris" --table w3:consistency=bsp
exits 2 'model mlp is not read from a file' both train --graph net.json --model mlp --data "$iris"
exits 2 'needs a file: --graph FILE' none train --model graph --data "$iris"
exits 2 'a graph has its own' layers train --graph net.json --layers 3 --data "$iris"
exits 1 'nothing.json' nothing train --graph nothing.json --data "$iris"

# --kernels: what a net is computed by, and who has none.
exits 2 "kernels" near train --model cnn --data "$iris" --kernels onednm
says near.err "did you mean.*onednn" || fail "the nearest kernels are not told: $(cat near.err)"
works ownkernels train --model mlp --layers 16 --data "$iris" --epochs 5 --seed 3 --quiet --json --kernels own
works nokernels train --model mlp --layers 16 --data "$iris" --epochs 5 --seed 3 --quiet --json
[ "$(hash_of ownkernels)" = "$(hash_of nokernels)" ] || fail "--kernels own is not the default"
exits 2 'kernels onednn with model logistic is refused' linear train --model logistic --data "$iris" --kernels onednn
if "$PLAIT" version --json | grep -q '"onednn": {"found": true'; then
    # another way to add up: not the same bits, which shows that they were asked
    set -- --model cnn --layers 16,32,64 --data "$data/digits/digits.csv.gz" --label -1 --epochs 1 --seed 3 --quiet --json
    works library train "$@" --kernels onednn
    works plain train "$@" --kernels own
    works exact train "$@" --kernels onednn --reduce exact
    works exact2 train "$@" --kernels onednn --reduce exact --workers 2
    [ "$(hash_of exact)" = "$(hash_of exact2)" ] || fail "--reduce exact with oneDNN: another model of two workers"
    [ -n "$(hash_of library)" ] && [ "$(hash_of library)" != "$(hash_of plain)" ] || fail "--kernels onednn computes what Plait's own do"
else
    exits 2 'libdnnl-dev' library train --model cnn --layers 4,8 --data "$iris" --epochs 1 --kernels onednn
fi

# export: what it needs, and what it refuses.
exits 2 'no file to write' out export --model-file own.model
exits 2 'no model' model export --out a.onnx
exits 2 'did you mean onnx' format export --model-file own.model --format onxn --out a.onnx
exits 2 "not 'json'\$" json export --model-file own.model --format json --out a.json
exits 2 '--out' same export --model-file own.model --out own.model
if "$PLAIT" version --json | grep -q '"onnx": {"found": true'; then
    works export export --model-file own.model --format onnx --out own.onnx
    [ -s own.onnx ] || fail "export wrote nothing"
    works again train --graph own.onnx --data "$iris" --epochs 1 --quiet
else
    exits 2 'libprotobuf-c-dev' export export --model-file own.model --format onnx --out own.onnx
fi
finish
